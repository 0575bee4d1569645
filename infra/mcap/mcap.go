// Package mcap reads and writes MCAP files, the recordings of topics over time that Foxglove, Rerun and other tools open (version 0 of the format, as published at
// mcap.dev). A Writer makes chunked files with indexes; a Reader reads any of them from the beginning to the end, also one that was cut off.
package mcap

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"slices"
	"unicode/utf8"
)

// magic is at the beginning and at the end of each file; its 0 is the version.
const magic = "\x89MCAP0\r\n"

// Codes of the records.
const (
	opHeader = iota + 1
	opFooter
	opSchema
	opChannel
	opMessage
	opChunk
	opMessageIndex
	opChunkIndex
	opAttachment
	opAttachmentIndex
	opStatistics
	opMetadata
	opMetadataIndex
	opSummaryOffset
	opDataEnd
)

// ErrFormat is the error for a file that is no MCAP file, or a broken one.
var ErrFormat = errors.New("no MCAP file, or a broken one")

// Record is one of the types below that is a pointer. Times are in nanoseconds since 1970; offsets are in bytes from the beginning of the file.
type Record interface {
	op() byte
	walk(*walker)
}

// Header is the first record.
type Header struct{ Profile, Library string }

// Footer is the last record.
type Footer struct {
	SummaryStart, SummaryOffsetStart uint64
	SummaryCRC                       uint32 // 0: none
}

// Schema describes the messages of channels.
type Schema struct {
	ID             uint16 // from 1
	Name, Encoding string // such as "jsonschema" and "protobuf"
	Data           []byte
}

// Channel is a topic.
type Channel struct {
	ID       uint16
	SchemaID uint16 // 0: none
	Topic    string
	Encoding string // of its messages, such as "json" and "protobuf"
	Metadata map[string]string
}

// Message is one of a channel.
type Message struct {
	ChannelID            uint16
	Sequence             uint32
	LogTime, PublishTime uint64
	Data                 []byte
}

// Chunk holds other records, compressed.
type Chunk struct {
	StartTime, EndTime uint64
	Size               uint64 // of the records, uncompressed
	CRC                uint32 // of the same; 0: none
	Compression        string // "" or "zstd"
	Records            []byte
}

// Entry is the place of a message in the records of its chunk.
type Entry struct{ LogTime, Offset uint64 }

// MessageIndex lists the messages of a channel in the chunk before it.
type MessageIndex struct {
	ChannelID uint16
	Entries   []Entry
}

// ChunkIndex is the place of a chunk.
type ChunkIndex struct {
	StartTime, EndTime   uint64
	Offset, Length       uint64
	MessageIndexes       map[uint16]uint64 // offsets, by channel
	MessageIndexLength   uint64
	Compression          string
	CompressedSize, Size uint64
}

// Attachment is a file within the file.
type Attachment struct {
	LogTime, CreateTime uint64
	Name, MediaType     string
	Data                []byte
}

// AttachmentIndex is the place of an attachment.
type AttachmentIndex struct {
	Offset, Length                uint64
	LogTime, CreateTime, DataSize uint64
	Name, MediaType               string
}

// Statistics counts what a file holds.
type Statistics struct {
	Messages                               uint64
	Schemas                                uint16
	Channels, Attachments, Metadata, Chunk uint32
	StartTime, EndTime                     uint64
	ChannelMessages                        map[uint16]uint64
}

// Metadata holds texts by name.
type Metadata struct {
	Name   string
	Values map[string]string
}

// MetadataIndex is the place of a Metadata record.
type MetadataIndex struct {
	Offset, Length uint64
	Name           string
}

// SummaryOffset is the place of the summary's records of one kind.
type SummaryOffset struct {
	Op            byte
	Start, Length uint64
}

// DataEnd ends the data; what comes after it repeats or describes what was before.
type DataEnd struct {
	CRC uint32 // of the file before it; 0: none
}

func (*Header) op() byte          { return opHeader }
func (*Footer) op() byte          { return opFooter }
func (*Schema) op() byte          { return opSchema }
func (*Channel) op() byte         { return opChannel }
func (*Message) op() byte         { return opMessage }
func (*Chunk) op() byte           { return opChunk }
func (*MessageIndex) op() byte    { return opMessageIndex }
func (*ChunkIndex) op() byte      { return opChunkIndex }
func (*Attachment) op() byte      { return opAttachment }
func (*AttachmentIndex) op() byte { return opAttachmentIndex }
func (*Statistics) op() byte      { return opStatistics }
func (*Metadata) op() byte        { return opMetadata }
func (*MetadataIndex) op() byte   { return opMetadataIndex }
func (*SummaryOffset) op() byte   { return opSummaryOffset }
func (*DataEnd) op() byte         { return opDataEnd }

// blank returns a record of a kind; nil for one that is not known, which readers pass over.
func blank(op byte) Record {
	switch op {
	case opHeader:
		return &Header{}
	case opFooter:
		return &Footer{}
	case opSchema:
		return &Schema{}
	case opChannel:
		return &Channel{}
	case opMessage:
		return &Message{}
	case opChunk:
		return &Chunk{}
	case opMessageIndex:
		return &MessageIndex{}
	case opChunkIndex:
		return &ChunkIndex{}
	case opAttachment:
		return &Attachment{}
	case opAttachmentIndex:
		return &AttachmentIndex{}
	case opStatistics:
		return &Statistics{}
	case opMetadata:
		return &Metadata{}
	case opMetadataIndex:
		return &MetadataIndex{}
	case opSummaryOffset:
		return &SummaryOffset{}
	case opDataEnd:
		return &DataEnd{}
	}
	return nil
}

func (x *Header) walk(w *walker) { w.text(&x.Profile); w.text(&x.Library) }
func (x *Footer) walk(w *walker) {
	w.u64(&x.SummaryStart, &x.SummaryOffsetStart)
	w.u32(&x.SummaryCRC)
}

func (x *Schema) walk(w *walker) {
	w.u16(&x.ID)
	w.text(&x.Name)
	w.text(&x.Encoding)
	w.bytes32(&x.Data)
}

func (x *Channel) walk(w *walker) {
	w.u16(&x.ID, &x.SchemaID)
	w.text(&x.Topic)
	w.text(&x.Encoding)
	w.texts(&x.Metadata)
}

func (x *Message) walk(w *walker) {
	w.u16(&x.ChannelID)
	w.u32(&x.Sequence)
	w.u64(&x.LogTime, &x.PublishTime)
	w.rest(&x.Data)
}

func (x *Chunk) walk(w *walker) {
	w.u64(&x.StartTime, &x.EndTime, &x.Size)
	w.u32(&x.CRC)
	w.text(&x.Compression)
	w.bytes64(&x.Records)
}

func (x *MessageIndex) walk(w *walker) {
	w.u16(&x.ChannelID)
	w.array(16*len(x.Entries), func(n int) { x.Entries = make([]Entry, 0, n/16) }, func() {
		x.Entries = append(x.Entries, Entry{})
		e := &x.Entries[len(x.Entries)-1]
		w.u64(&e.LogTime, &e.Offset)
	}, func() {
		for i := range x.Entries {
			w.u64(&x.Entries[i].LogTime, &x.Entries[i].Offset)
		}
	})
}

func (x *ChunkIndex) walk(w *walker) {
	w.u64(&x.StartTime, &x.EndTime, &x.Offset, &x.Length)
	w.counts(&x.MessageIndexes)
	w.u64(&x.MessageIndexLength)
	w.text(&x.Compression)
	w.u64(&x.CompressedSize, &x.Size)
}

func (x *Attachment) walk(w *walker) {
	w.u64(&x.LogTime, &x.CreateTime)
	w.text(&x.Name)
	w.text(&x.MediaType)
	w.bytes64(&x.Data)
	w.crc()
}

func (x *AttachmentIndex) walk(w *walker) {
	w.u64(&x.Offset, &x.Length, &x.LogTime, &x.CreateTime, &x.DataSize)
	w.text(&x.Name)
	w.text(&x.MediaType)
}

func (x *Statistics) walk(w *walker) {
	w.u64(&x.Messages)
	w.u16(&x.Schemas)
	w.u32(&x.Channels, &x.Attachments, &x.Metadata, &x.Chunk)
	w.u64(&x.StartTime, &x.EndTime)
	w.counts(&x.ChannelMessages)
}

func (x *Metadata) walk(w *walker) { w.text(&x.Name); w.texts(&x.Values) }
func (x *MetadataIndex) walk(w *walker) {
	w.u64(&x.Offset, &x.Length)
	w.text(&x.Name)
}

func (x *SummaryOffset) walk(w *walker) {
	w.u8(&x.Op)
	w.u64(&x.Start, &x.Length)
}
func (x *DataEnd) walk(w *walker) { w.u32(&x.CRC) }

// walker writes the fields of a record to b, or reads them from it.
type walker struct {
	reads bool
	b     []byte // written so far, or left to read
	whole []byte // content of the record that is read
	from  int    // where the content of the record that is written begins in b
	err   error
}

// appendRecord appends r with its code and length.
func appendRecord(b []byte, r Record) []byte {
	at := len(b) + 9
	w := walker{b: append(b, r.op(), 0, 0, 0, 0, 0, 0, 0, 0), from: at}
	r.walk(&w)
	binary.LittleEndian.PutUint64(w.b[at-8:], uint64(len(w.b)-at))
	return w.b
}

// parse reads the content of a record, whose slices r keeps.
func parse(r Record, content []byte) error {
	w := walker{reads: true, b: content, whole: content}
	r.walk(&w)
	return w.err
}

// take returns the next n bytes to read; nil if there are fewer, which is an error.
func (w *walker) take(n uint64, what string) []byte {
	if w.err == nil && n > uint64(len(w.b)) {
		w.err = fmt.Errorf("%s of %d bytes, %d are left", what, n, len(w.b))
	}
	if w.err != nil {
		return nil
	}
	b := w.b[:n:n]
	w.b = w.b[n:]
	return b
}

func (w *walker) u8(p *byte) {
	if !w.reads {
		w.b = append(w.b, *p)
	} else if b := w.take(1, "number"); b != nil {
		*p = b[0]
	}
}

func (w *walker) u16(all ...*uint16) {
	for _, p := range all {
		if !w.reads {
			w.b = binary.LittleEndian.AppendUint16(w.b, *p)
		} else if b := w.take(2, "number"); b != nil {
			*p = binary.LittleEndian.Uint16(b)
		}
	}
}

func (w *walker) u32(all ...*uint32) {
	for _, p := range all {
		if !w.reads {
			w.b = binary.LittleEndian.AppendUint32(w.b, *p)
		} else if b := w.take(4, "number"); b != nil {
			*p = binary.LittleEndian.Uint32(b)
		}
	}
}

func (w *walker) u64(all ...*uint64) {
	for _, p := range all {
		if !w.reads {
			w.b = binary.LittleEndian.AppendUint64(w.b, *p)
		} else if b := w.take(8, "number"); b != nil {
			*p = binary.LittleEndian.Uint64(b)
		}
	}
}

func (w *walker) length32(n int) uint64 {
	x := uint32(n)
	w.u32(&x)
	return uint64(x)
}

func (w *walker) bytes32(p *[]byte) {
	n := w.length32(len(*p))
	if w.reads {
		*p = w.take(n, "bytes")
		return
	}
	w.b = append(w.b, *p...)
}

func (w *walker) bytes64(p *[]byte) {
	n := uint64(len(*p))
	w.u64(&n)
	if w.reads {
		*p = w.take(n, "bytes")
		return
	}
	w.b = append(w.b, *p...)
}

// crc is the checksum of all fields before it.
func (w *walker) crc() {
	before := w.b[w.from:]
	if w.reads {
		before = w.whole[:len(w.whole)-len(w.b)]
	}
	sum := crc32.ChecksumIEEE(before)
	got := sum
	if w.u32(&got); w.err == nil && got != 0 && got != sum {
		w.err = fmt.Errorf("checksum %08x, want %08x", got, sum)
	}
}

// rest takes all that is left of the record.
func (w *walker) rest(p *[]byte) {
	if w.reads {
		*p = w.take(uint64(len(w.b)), "bytes")
		return
	}
	w.b = append(w.b, *p...)
}

func (w *walker) text(p *string) {
	b := []byte(*p)
	w.bytes32(&b)
	if w.reads {
		if *p = string(b); w.err == nil && !utf8.ValidString(*p) {
			w.err = fmt.Errorf("text %.40q, want UTF-8", *p)
		}
	}
}

// array reads or writes a list whose length in bytes comes first.
func (w *walker) array(size int, begin func(size int), read, write func()) {
	n := w.length32(size)
	if !w.reads {
		write()
		return
	}
	content := w.take(n, "list")
	after := w.b
	if w.err == nil {
		begin(len(content))
		for w.b = content; len(w.b) > 0 && w.err == nil; {
			read()
		}
		w.b = after
	}
}

func (w *walker) texts(p *map[string]string) {
	size := 0
	for k, v := range *p {
		size += 8 + len(k) + len(v)
	}
	w.array(size, func(int) { *p = map[string]string{} }, func() {
		var k, v string
		w.text(&k)
		w.text(&v)
		(*p)[k] = v
	}, func() {
		for _, k := range slices.Sorted(maps.Keys(*p)) {
			v := (*p)[k]
			w.text(&k)
			w.text(&v)
		}
	})
}

func (w *walker) counts(p *map[uint16]uint64) {
	w.array(10*len(*p), func(int) { *p = map[uint16]uint64{} }, func() {
		var k uint16
		var v uint64
		w.u16(&k)
		w.u64(&v)
		(*p)[k] = v
	}, func() {
		for _, k := range slices.Sorted(maps.Keys(*p)) {
			v := (*p)[k]
			w.u16(&k)
			w.u64(&v)
		}
	})
}
