package mcap

import (
	"cmp"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"slices"

	"github.com/klauspost/compress/zstd"
)

// chunkSize is how many bytes of records make a chunk, before they are compressed. A recording that is cut off loses at most those of the last one.
const chunkSize = 1 << 20

// Writer writes a recording. Its first error is the error of each call after it. Not safe for concurrent use.
type Writer struct {
	out  io.Writer
	err  error
	at   uint64 // bytes written
	crc  uint32 // of them
	pack *zstd.Encoder

	chunk        []byte
	first, last  uint64                   // times of its messages
	entries      map[uint16]*MessageIndex // of its messages
	schemas      []*Schema
	channels     []*Channel
	chunks       []*ChunkIndex
	attachments  []*AttachmentIndex
	metadata     []*MetadataIndex
	stats        Statistics
	messages     map[uint16]uint64
	buf, packing []byte
}

// NewWriter begins a recording. library names the program that writes it.
func NewWriter(out io.Writer, library string) (*Writer, error) {
	pack, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedDefault), zstd.WithEncoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	w := &Writer{out: out, pack: pack, entries: map[uint16]*MessageIndex{}, messages: map[uint16]uint64{}}
	w.write([]byte(magic))
	w.record(&Header{Library: library})
	return w, w.err
}

func (w *Writer) write(b []byte) {
	if w.err != nil {
		return
	}
	n, err := w.out.Write(b)
	w.at += uint64(n)
	w.crc = crc32.Update(w.crc, crc32.IEEETable, b[:n])
	w.err = err
}

// record writes r and returns its place.
func (w *Writer) record(r Record) (at, length uint64) {
	at = w.at
	w.buf = appendRecord(w.buf[:0], r)
	w.write(w.buf)
	return at, uint64(len(w.buf))
}

// Schema adds a schema and returns its number. There may be 65,535.
func (w *Writer) Schema(name, encoding string, data []byte) (uint16, error) {
	if len(w.schemas) == 1<<16-1 {
		return 0, fmt.Errorf("schema %q: there are %d already", name, len(w.schemas))
	}
	s := &Schema{ID: uint16(len(w.schemas) + 1), Name: name, Encoding: encoding, Data: data}
	w.schemas = append(w.schemas, s)
	w.chunk = appendRecord(w.chunk, s)
	return s.ID, w.err
}

// Channel adds a topic of the schema (0: none) and returns its number. There may be 65,536.
func (w *Writer) Channel(topic string, schema uint16, encoding string, metadata map[string]string) (uint16, error) {
	switch {
	case len(w.channels) == 1<<16:
		return 0, fmt.Errorf("channel %q: there are %d already", topic, len(w.channels))
	case int(schema) > len(w.schemas):
		return 0, fmt.Errorf("channel %q: schema %d, there are %d", topic, schema, len(w.schemas))
	}
	c := &Channel{ID: uint16(len(w.channels)), SchemaID: schema, Topic: topic, Encoding: encoding, Metadata: metadata}
	w.channels = append(w.channels, c)
	w.chunk = appendRecord(w.chunk, c)
	return c.ID, w.err
}

// Message adds a message of a channel.
func (w *Writer) Message(m Message) error {
	if int(m.ChannelID) >= len(w.channels) {
		return fmt.Errorf("message of channel %d, there are %d", m.ChannelID, len(w.channels))
	}
	x := w.entries[m.ChannelID]
	if x == nil {
		x = &MessageIndex{ChannelID: m.ChannelID}
		w.entries[m.ChannelID] = x
	}
	if len(w.entries) == 1 && len(x.Entries) == 0 {
		w.first, w.last = m.LogTime, m.LogTime
	}
	w.first, w.last = min(w.first, m.LogTime), max(w.last, m.LogTime)
	x.Entries = append(x.Entries, Entry{m.LogTime, uint64(len(w.chunk))})
	w.chunk = appendRecord(w.chunk, &m)
	if w.stats.Messages == 0 {
		w.stats.StartTime, w.stats.EndTime = m.LogTime, m.LogTime
	}
	w.stats.StartTime, w.stats.EndTime = min(w.stats.StartTime, m.LogTime), max(w.stats.EndTime, m.LogTime)
	w.stats.Messages++
	w.messages[m.ChannelID]++
	if len(w.chunk) >= chunkSize {
		return w.Flush()
	}
	return w.err
}

// Attach adds a file.
func (w *Writer) Attach(a Attachment) error {
	at, length := w.record(&a)
	w.attachments = append(w.attachments, &AttachmentIndex{Offset: at, Length: length, LogTime: a.LogTime, CreateTime: a.CreateTime, DataSize: uint64(len(a.Data)),
		Name: a.Name, MediaType: a.MediaType})
	return w.err
}

// Metadata adds texts by name.
func (w *Writer) Metadata(name string, values map[string]string) error {
	at, length := w.record(&Metadata{Name: name, Values: values})
	w.metadata = append(w.metadata, &MetadataIndex{Offset: at, Length: length, Name: name})
	return w.err
}

// Flush writes what was added: it can be read although the file is not finished.
func (w *Writer) Flush() error {
	if len(w.chunk) == 0 {
		return w.err
	}
	w.packing = w.pack.EncodeAll(w.chunk, w.packing[:0])
	c := &Chunk{StartTime: w.first, EndTime: w.last, Size: uint64(len(w.chunk)), CRC: crc32.ChecksumIEEE(w.chunk), Compression: "zstd", Records: w.packing}
	at, length := w.record(c)
	x := &ChunkIndex{StartTime: c.StartTime, EndTime: c.EndTime, Offset: at, Length: length, MessageIndexes: map[uint16]uint64{}, Compression: c.Compression,
		CompressedSize: uint64(len(c.Records)), Size: c.Size}
	for _, id := range slices.Sorted(maps.Keys(w.entries)) {
		at, length := w.record(w.entries[id])
		x.MessageIndexes[id] = at
		x.MessageIndexLength += length
	}
	w.chunks = append(w.chunks, x)
	w.chunk, w.first, w.last = w.chunk[:0], 0, 0
	clear(w.entries)
	return w.err
}

// Close ends the recording with its indexes and counts. It does not close what is written to.
func (w *Writer) Close() error {
	_ = w.Flush() // its error stays
	w.record(&DataEnd{CRC: w.crc})
	start := w.at
	w.crc = 0
	w.stats.Schemas, w.stats.Channels, w.stats.ChannelMessages = uint16(len(w.schemas)), uint32(len(w.channels)), w.messages
	w.stats.Attachments, w.stats.Metadata, w.stats.Chunk = uint32(len(w.attachments)), uint32(len(w.metadata)), uint32(len(w.chunks))
	var groups []*SummaryOffset
	group(w, &groups, w.schemas)
	group(w, &groups, w.channels)
	group(w, &groups, w.chunks)
	group(w, &groups, w.attachments)
	group(w, &groups, w.metadata)
	group(w, &groups, []*Statistics{&w.stats})
	f := &Footer{SummaryStart: start, SummaryOffsetStart: w.at}
	for _, g := range groups {
		w.record(g)
	}
	b := appendRecord(nil, f)
	f.SummaryCRC = crc32.Update(w.crc, crc32.IEEETable, b[:len(b)-4])
	w.record(f)
	w.write([]byte(magic))
	return cmp.Or(w.err, w.pack.Close())
}

// group writes the summary's records of one kind.
func group[R Record](w *Writer, groups *[]*SummaryOffset, all []R) {
	if len(all) == 0 {
		return
	}
	start := w.at
	for _, r := range all {
		w.record(r)
	}
	*groups = append(*groups, &SummaryOffset{Op: all[0].op(), Start: start, Length: w.at - start})
}
