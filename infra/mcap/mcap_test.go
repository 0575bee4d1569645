package mcap

import (
	"bytes"
	"encoding/hex"
	"errors"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// all reads what a file holds.
func all(t *testing.T, b []byte) (records []Record, err error) {
	t.Helper()
	r, err := NewReader(bytes.NewReader(b))
	for err == nil {
		var rec Record
		if rec, err = r.Next(); err == nil {
			records = append(records, rec)
		}
	}
	return records, err
}

// recording is a small one with one of everything.
func recording(t testing.TB) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := NewWriter(&b, "test")
	if err != nil {
		t.Fatal(err)
	}
	schema, err := w.Schema("Head", "jsonschema", []byte(`{"type":"object"}`))
	if err != nil {
		t.Fatal(err)
	}
	head, herr := w.Channel("/robot/head", schema, "json", map[string]string{"unit": "rad", "part": "head"})
	raw, rerr := w.Channel("/raw", 0, "", nil)
	if err := errors.Join(herr, rerr, w.Metadata("robot", map[string]string{"thing": "vic:00e20100"}),
		w.Message(Message{head, 1, 2000, 1000, []byte(`{"val":0.1}`)}), w.Message(Message{raw, 1, 1500, 1500, nil}), w.Flush(),
		w.Attach(Attachment{LogTime: 7, Name: "tree.json", MediaType: "application/json", Data: []byte("{}")}),
		w.Message(Message{head, 2, 3000, 2000, []byte(`{"val":0.2}`)}), w.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestRoundTrip(t *testing.T) {
	file := recording(t)
	records, err := all(t, file)
	if !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	var kinds []string
	for _, r := range records {
		kinds = append(kinds, strings.TrimPrefix(reflect.TypeOf(r).String(), "*mcap."))
	}
	want := "Header Metadata Chunk Schema Channel Channel Message Message MessageIndex MessageIndex Attachment Chunk Message MessageIndex DataEnd " +
		"Schema Channel Channel ChunkIndex ChunkIndex AttachmentIndex MetadataIndex Statistics SummaryOffset SummaryOffset SummaryOffset SummaryOffset SummaryOffset SummaryOffset Footer"
	if got := strings.Join(kinds, " "); got != want {
		t.Fatalf("%s\nwant %s", got, want)
	}
	if m := records[6].(*Message); !reflect.DeepEqual(m, &Message{0, 1, 2000, 1000, []byte(`{"val":0.1}`)}) {
		t.Errorf("%+v", m)
	}
	if s := records[22].(*Statistics); !reflect.DeepEqual(s, &Statistics{3, 1, 2, 1, 1, 2, 1500, 3000, map[uint16]uint64{0: 2, 1: 1}}) {
		t.Errorf("%+v", s)
	}
	// Each place that the summary names is where such a record is.
	at := func(offset, length uint64) Record {
		r := blank(file[offset])
		if err := parse(r, file[offset+9:offset+length]); err != nil {
			t.Errorf("at %d: %v", offset, err)
		}
		return r
	}
	for _, r := range records {
		switch x := r.(type) {
		case *ChunkIndex:
			c, ok := at(x.Offset, x.Length).(*Chunk)
			if !ok || c.StartTime != x.StartTime || c.EndTime != x.EndTime || c.Size != x.Size || uint64(len(c.Records)) != x.CompressedSize {
				t.Errorf("%+v", x)
			}
			for id, offset := range x.MessageIndexes {
				if file[offset] != opMessageIndex || file[offset+9] != byte(id) || offset >= x.Offset+x.Length+x.MessageIndexLength {
					t.Errorf("index of channel %d at %d", id, offset)
				}
			}
		case *AttachmentIndex:
			if a, ok := at(x.Offset, x.Length).(*Attachment); !ok || a.Name != x.Name || uint64(len(a.Data)) != x.DataSize {
				t.Errorf("%+v", x)
			}
		case *MetadataIndex:
			if m, ok := at(x.Offset, x.Length).(*Metadata); !ok || m.Name != x.Name || m.Values["thing"] != "vic:00e20100" {
				t.Errorf("%+v", x)
			}
		case *SummaryOffset:
			if file[x.Start] != x.Op {
				t.Errorf("%+v: there is a record %d", x, file[x.Start])
			}
		}
	}
	foot := records[len(records)-1].(*Footer)
	if file[foot.SummaryStart-13] != opDataEnd || file[foot.SummaryOffsetStart] != opSummaryOffset {
		t.Errorf("%+v", foot)
	}
}

// TestWire: the bytes of records, as the format's description has them.
func TestWire(t *testing.T) {
	for _, tc := range []struct {
		r   Record
		hex string
	}{
		{&Header{"a", "bc"}, "01 0b00000000000000 01000000 61 02000000 6263"},
		{&Footer{1, 2, 3}, "02 1400000000000000 0100000000000000 0200000000000000 03000000"},
		{&Schema{1, "n", "e", []byte{9}}, "03 1100000000000000 0100 01000000 6e 01000000 65 01000000 09"},
		{&Channel{1, 2, "t", "e", map[string]string{"k": "v"}}, "04 1c00000000000000 0100 0200 01000000 74 01000000 65 0a000000 01000000 6b 01000000 76"},
		{&Message{1, 2, 3, 4, []byte{9}}, "05 1700000000000000 0100 02000000 0300000000000000 0400000000000000 09"},
		{&Chunk{1, 2, 3, 4, "", []byte{9}}, "06 2900000000000000 0100000000000000 0200000000000000 0300000000000000 04000000 00000000 0100000000000000 09"},
		{&MessageIndex{1, []Entry{{2, 3}}}, "07 1600000000000000 0100 10000000 0200000000000000 0300000000000000"},
		{&ChunkIndex{1, 2, 3, 4, map[uint16]uint64{5: 6}, 7, "", 8, 9}, "08 4a00000000000000 0100000000000000 0200000000000000 0300000000000000 0400000000000000" +
			"0a000000 0500 0600000000000000 0700000000000000 00000000 0800000000000000 0900000000000000"},
		{&Attachment{1, 2, "a", "m", []byte{9}}, "09 2700000000000000 0100000000000000 0200000000000000 01000000 61 01000000 6d 0100000000000000 09 7faae8e0"},
		{&AttachmentIndex{1, 2, 3, 4, 5, "a", "m"}, "0a 3200000000000000 0100000000000000 0200000000000000 0300000000000000 0400000000000000 0500000000000000 01000000 61 01000000 6d"},
		{&Statistics{1, 2, 3, 4, 5, 6, 7, 8, map[uint16]uint64{9: 10}}, "0b 3800000000000000 0100000000000000 0200 03000000 04000000 05000000 06000000 0700000000000000 0800000000000000" +
			"0a000000 0900 0a00000000000000"},
		{&Metadata{"n", map[string]string{"k": "v"}}, "0c 1300000000000000 01000000 6e 0a000000 01000000 6b 01000000 76"},
		{&MetadataIndex{1, 2, "n"}, "0d 1500000000000000 0100000000000000 0200000000000000 01000000 6e"},
		{&SummaryOffset{1, 2, 3}, "0e 1100000000000000 01 0200000000000000 0300000000000000"},
		{&DataEnd{1}, "0f 0400000000000000 01000000"},
	} {
		want, err := hex.DecodeString(strings.ReplaceAll(tc.hex, " ", ""))
		if err != nil {
			t.Fatal(err)
		}
		if got := appendRecord(nil, tc.r); !bytes.Equal(got, want) {
			t.Errorf("%T: %x, want %x", tc.r, got, want)
		}
		back := blank(want[0])
		if err := parse(back, append(want[9:], make([]byte, padding(tc.r))...)); err != nil || !reflect.DeepEqual(back, tc.r) {
			t.Errorf("%+v, %v; want %+v", back, err, tc.r)
		}
		if err := parse(blank(want[0]), want[9:len(want)-1]); err == nil && padding(tc.r) > 0 {
			t.Errorf("%T without its last byte is read", tc.r)
		}
	}
}

// padding is for fields that a later version may add; a message's data is all that follows.
func padding(r Record) int {
	if _, ok := r.(*Message); ok {
		return 0
	}
	return 3
}

// TestBroken: each byte that is changed is noticed or harmless, and each part of a file is read as far as it goes.
func TestBroken(t *testing.T) {
	file := recording(t)
	whole, _ := all(t, file)
	for n := range file {
		records, err := all(t, file[:n])
		if n < len(magic) {
			if !errors.Is(err, ErrFormat) {
				t.Fatalf("%d bytes: %v", n, err)
			}
			continue
		}
		if !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Fatalf("%d of %d bytes: %v", n, len(file), err)
		}
		if len(records) > 0 && !reflect.DeepEqual(records, whole[:len(records)]) {
			t.Fatalf("%d bytes: other records", n)
		}
	}
	noticed := 0
	for n := range file {
		b := slices.Clone(file)
		b[n] ^= 0x10
		if _, err := all(t, b); !errors.Is(err, io.EOF) {
			noticed++
		}
	}
	if noticed < len(file)*99/100 {
		t.Errorf("%d of %d changed bytes noticed", noticed, len(file))
	}
	if _, err := all(t, append(slices.Clone(file), 0)); !errors.Is(err, ErrFormat) {
		t.Errorf("a byte after the end: %v", err)
	}
}

func TestRefused(t *testing.T) {
	var out bytes.Buffer
	w, err := NewWriter(&out, "test")
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Message(Message{ChannelID: 0}); err == nil {
		t.Error("message of no channel")
	}
	if _, err := w.Channel("x", 1, "", nil); err == nil {
		t.Error("channel of no schema")
	}
	full := errors.New("full")
	w, _ = NewWriter(io.Discard, "test")
	w.out = writerFunc(func([]byte) (int, error) { return 0, full })
	_ = w.Metadata("x", nil)
	if err := w.Close(); !errors.Is(err, full) {
		t.Errorf("a full disk: %v", err)
	}
	for name, records := range map[string][]Record{
		"no channel":     {&Message{}},
		"no schema":      {&Channel{SchemaID: 3}},
		"compression":    {&Chunk{Compression: "lz4"}},
		"size":           {&Chunk{Size: 1}},
		"large":          {&Chunk{Size: 1 << 40}},
		"checksum":       {&Chunk{Size: 1, CRC: 1, Records: []byte{0}}},
		"half a record":  {&Chunk{Size: 1, Records: []byte{5}}},
		"chunk in chunk": {func() Record { b := appendRecord(nil, &Chunk{}); return &Chunk{Size: uint64(len(b)), Records: b} }()},
		"data":           {&DataEnd{CRC: 1}},
		"summary":        {&DataEnd{}, &Footer{SummaryCRC: 1}},
	} {
		b := []byte(magic)
		for _, r := range records {
			b = appendRecord(b, r)
		}
		if _, err := all(t, append(b, magic...)); !errors.Is(err, ErrFormat) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

func FuzzReader(f *testing.F) {
	f.Add(recording(f))
	f.Add([]byte(magic))
	f.Fuzz(func(t *testing.T, b []byte) {
		records, err := all(t, b)
		if err == nil {
			t.Fatal("no end")
		}
		for _, r := range records { // what was read is written so that it is read again
			back := blank(r.op())
			if err := parse(back, appendRecord(nil, r)[9:]); err != nil || !reflect.DeepEqual(back, r) {
				t.Fatalf("%+v, %v; want %+v", back, err, r)
			}
		}
	})
}
