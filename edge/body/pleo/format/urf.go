package format

import (
	"cmp"
	"fmt"
	"slices"
)

const urf kind = "urf"

const (
	urfSignature = "UGRF"
	urfHeader    = 64
	urfBlock     = 512 // resources of a kind, and the indices, begin at a multiple of it (PLEO-URF-06)
	urfFill      = '0' // between them
	urfEntry     = 8 + MaxName
	urfTrailer   = 8 // "ADLR" and the sum
	urfProperty  = 4 // bytes of a property's body (PLEO-URF-11)
)

// ResourceKind is a kind of resources. Each has an index of its own.
type ResourceKind int

// The kinds, in the order of the file.
const (
	Sounds ResourceKind = iota
	Motions
	Commands
	Scripts
	Properties
	kindCount
)

// signatures are the tags of the indices (PLEO-URF-03).
var signatures = [kindCount]string{"UGSF", "UGMF", "UGCF", " AMX", "PROP"}

func (k ResourceKind) String() string {
	return [...]string{"sounds", "motions", "commands", "scripts", "properties"}[k]
}

// FirstID returns the id of the first resource of the kind; the others follow in the order of the index (PLEO-URF-10).
func (k ResourceKind) FirstID() uint16 { return 0x1000 * (uint16(k) + 1) }

// Bundle is a URF file: the resources of an application.
type Bundle struct {
	Major, Minor uint16 // version of the format: 1 and 0 (PLEO-URF-02)
	Built        uint32 // seconds since 1970
	Revision     uint32 // of the project

	// Resources are in the order of their ids. Properties have a name and no data. An entry without name and data keeps an id free.
	Resources [kindCount][]Resource

	// StandardSum says that the Adler-32 sum begins with 1, as elsewhere. Pleo's tools begin with 0 (PLEO-URF-09).
	StandardSum bool
}

// Resource is a file in a bundle.
type Resource struct {
	Name string
	Data []byte
}

// adler returns the Adler-32 sum of b that begins with a.
func adler(a uint32, b []byte) uint32 {
	const mod, run = 65521, 5552 // after run bytes the sums could overflow
	var s uint32
	for len(b) > 0 {
		part := b[:min(run, len(b))]
		b = b[len(part):]
		for _, c := range part {
			a += uint32(c)
			s += a
		}
		a, s = a%mod, s%mod
	}
	return s<<16 | a
}

// ReadBundle returns the bundle in file. Data of resources aliases it. Indices may come in any order.
func ReadBundle(file []byte) (*Bundle, error) {
	if err := urf.begin(file, urfSignature, urfHeader+urfTrailer); err != nil {
		return nil, err
	}
	end := len(file) - urfTrailer
	if tag := string(file[56:60]); tag != "SIZE" {
		return nil, urf.refuse(56, "size", fmt.Sprintf("%q", tag), "%q", "SIZE")
	}
	if size := order.Uint32(file[60:]); uint64(size) != uint64(end) {
		return nil, urf.refuse(60, "size", size, "%d, the length of the file less %d", end, urfTrailer) // PLEO-URF-04
	}
	if tag := string(file[end : end+4]); tag != "ADLR" {
		return nil, urf.refuse(end, "sum", fmt.Sprintf("%q", tag), "%q", "ADLR")
	}
	b := &Bundle{Major: order.Uint16(file[4:]), Minor: order.Uint16(file[6:]), Built: order.Uint32(file[8:]), Revision: order.Uint32(file[12:])}
	if b.Major != 1 {
		return nil, urf.refuse(4, "version", b.Major, "1")
	}
	sum := order.Uint32(file[end+4:])
	if want := adler(0, file[:end]); sum != want {
		if b.StandardSum = true; sum != adler(1, file[:end]) {
			return nil, urf.refuse(end+4, "sum", fmt.Sprintf("%#08x", sum), "%#08x", want)
		}
	}
	r := bundleReader{file: file, end: end, b: b}
	for at := 16; at < 56; at += 8 {
		if err := r.index(at); err != nil {
			return nil, err
		}
	}
	if err := r.overlaps(); err != nil {
		return nil, err
	}
	return b, nil
}

// bundleReader reads the indices.
type bundleReader struct {
	file []byte
	end  int // of the indices
	b    *Bundle
	seen [kindCount]bool
	used []span
}

// span is a part of the file that something has for itself.
type span struct {
	from, to int64
	entry    int // of the index, for errors
}

// index reads the index that the header names at a byte.
func (r *bundleReader) index(at int) error {
	tag := string(r.file[at : at+4])
	k := slices.Index(signatures[:], tag)
	if k < 0 || r.seen[k] {
		return urf.refuse(at, "index", fmt.Sprintf("%q", tag), "each of %q once", signatures)
	}
	r.seen[k] = true
	begin := int64(order.Uint32(r.file[at+4:]))
	if begin < urfHeader || begin+8 > int64(r.end) {
		return urf.refuse(at+4, ResourceKind(k).String(), begin, "an index inside the file of %d bytes", r.end)
	}
	if got := string(r.file[begin : begin+4]); got != tag {
		return urf.refuse(int(begin), ResourceKind(k).String(), fmt.Sprintf("%q", got), "%q", tag)
	}
	size := int64(order.Uint32(r.file[begin+4:]))
	if size%urfEntry == 8 {
		size -= 8 // the size of an index may count its own head (PLEO-URF-07)
	}
	if size%urfEntry != 0 || begin+8+size > int64(r.end) {
		return urf.refuse(int(begin)+4, ResourceKind(k).String(), size, "a multiple of %d inside the file of %d bytes", urfEntry, r.end)
	}
	r.used = append(r.used, span{begin, begin + 8 + size, int(begin)})
	for i := int64(0); i < size; i += urfEntry {
		if err := r.entry(ResourceKind(k), int(begin+8+i)); err != nil {
			return err
		}
	}
	return nil
}

// entry reads an entry of 40 bytes (PLEO-URF-08).
func (r *bundleReader) entry(k ResourceKind, at int) error {
	from, size := int64(order.Uint32(r.file[at:])), int64(order.Uint32(r.file[at+4:]))
	out := Resource{Name: name(r.file[at+8:])}
	if k != Properties && (from != 0 || size != 0) {
		if from < urfHeader || from+size > int64(r.end) {
			return urf.refuse(at, fmt.Sprintf("%s[%d]", k, len(r.b.Resources[k])), fmt.Sprintf("%d bytes at %d", size, from), "a place inside the file of %d bytes", r.end)
		}
		out.Data = r.file[from : from+size : from+size]
		r.used = append(r.used, span{from, from + size, at})
	}
	r.b.Resources[k] = append(r.b.Resources[k], out)
	return nil
}

// overlaps refuses a file whose resources or indices share bytes: it could be small, and large when it is written again.
func (r *bundleReader) overlaps() error {
	slices.SortFunc(r.used, func(a, b span) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to)) })
	for i := 1; i < len(r.used); i++ {
		if a, b := r.used[i-1], r.used[i]; b.from < a.to {
			return urf.refuse(b.entry, "place", fmt.Sprintf("%d to %d", b.from, b.to), "none of the bytes %d to %d, which are used", a.from, a.to)
		}
	}
	return nil
}

// Append appends the file of b to dst. Each kind's first resource begins at a multiple of 512 bytes, the others at a multiple of 4 (PLEO-URF-06).
func (b *Bundle) Append(dst []byte) ([]byte, error) {
	if b.Major != 1 {
		return nil, urf.refuse(4, "version", b.Major, "1")
	}
	start := len(dst)
	dst = append(dst, make([]byte, urfHeader)...)
	pad := func(to int) {
		for (len(dst)-start)%to != 0 {
			dst = append(dst, urfFill)
		}
	}
	pad(urfBlock)
	var indices [kindCount][]byte
	for k := range kindCount {
		first := true // of its kind in the file
		for i, e := range b.Resources[k] {
			if err := urf.checkName(0, fmt.Sprintf("%s[%d].name", k, i), e.Name); err != nil {
				return nil, err
			}
			body, size := e.Data, len(e.Data)
			if k == Properties {
				if len(e.Data) > 0 {
					return nil, urf.refuse(0, fmt.Sprintf("%s[%d]", k, i), fmt.Sprintf("%d bytes", size), "a name only")
				}
				body, size = make([]byte, urfProperty), len(e.Name)
			}
			from := 0
			if len(body) > 0 {
				if pad(4); first {
					pad(urfBlock)
				}
				from, first = len(dst)-start, false
				dst = append(dst, body...)
			}
			indices[k] = order.AppendUint32(indices[k], uint32(from))
			indices[k] = order.AppendUint32(indices[k], uint32(size))
			indices[k] = appendName(indices[k], e.Name)
		}
	}
	pad(urfBlock)
	head := append(dst[start:start:start+urfHeader], urfSignature...)
	head = order.AppendUint16(head, b.Major)
	head = order.AppendUint16(head, b.Minor)
	head = order.AppendUint32(head, b.Built)
	head = order.AppendUint32(head, b.Revision)
	for k := range kindCount {
		head = append(head, signatures[k]...)
		head = order.AppendUint32(head, uint32(len(dst)-start))
		dst = append(dst, signatures[k]...)
		dst = order.AppendUint32(dst, uint32(len(indices[k])))
		dst = append(dst, indices[k]...)
	}
	head = append(head, "SIZE"...)
	head = order.AppendUint32(head, uint32(len(dst)-start))
	copy(dst[start:], head)
	begin := uint32(0)
	if b.StandardSum {
		begin = 1
	}
	sum := adler(begin, dst[start:])
	dst = append(dst, "ADLR"...)
	return order.AppendUint32(dst, sum), nil
}

// Layout says where the parts of a bundle are, in bytes from its start, by kind.
type Layout struct {
	Resources [kindCount][]int
	Indices   [kindCount]int
}

// Places returns where the parts of a bundle are that ReadBundle accepts.
func Places(file []byte) (*Layout, error) {
	b, err := ReadBundle(file)
	if err != nil {
		return nil, err
	}
	var l Layout
	for at := 16; at < 56; at += 8 {
		k := slices.Index(signatures[:], string(file[at:at+4]))
		begin := int(order.Uint32(file[at+4:]))
		l.Indices[k] = begin
		for i := range b.Resources[k] {
			l.Resources[k] = append(l.Resources[k], int(order.Uint32(file[begin+8+urfEntry*i:])))
		}
	}
	return &l, nil
}
