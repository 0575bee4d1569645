// Package emr reads and writes the electronic medical record: the first 1024 bytes of the EMR partition, written once in the factory,
// kept through every reset (VEC-STOR-02..04, 06, part of VEC-STOR-05). All words are little endian.
//
//	0 ESN   4 HW_VER   8 MODEL   12 LOT_CODE   16 PLAYPEN_READY   20 PLAYPEN_PASSED   24 PACKED_OUT   28 PACKED_OUT_DATE (unix s)
//	32 reserved u32[48]   224 playpen u32[8]   256 fixture u32[192]
//
// The source prints the reserved field as u32[4] with a size of 192 bytes; the offsets agree with 48 words.
package emr

import (
	"encoding/binary"
	"fmt"
	"time"
)

// Size of a record in bytes.
const Size = 1024

// Path is where the original's partition appears below a robot's root.
const Path = "dev/block/bootdevice/by-name/emr"

// Record is one robot's record. It is a plain value.
type Record struct {
	ESN           uint32
	HardwareRev   uint32
	Model         uint32
	LotCode       uint32
	PlaypenReady  uint32
	PlaypenPassed uint32
	PackedOut     uint32
	PackedOutDate uint32 // unix seconds
	Reserved      [48]uint32
	Playpen       [8]uint32
	Fixture       [192]uint32
}

// Parse reads a record from the start of b. The partition is 16 MB; bytes behind the record are ignored.
func Parse(b []byte) (Record, error) {
	if len(b) < Size {
		return Record{}, fmt.Errorf("emr: %d bytes: want at least %d", len(b), Size)
	}
	var r Record
	if _, err := binary.Decode(b[:Size], binary.LittleEndian, &r); err != nil {
		return Record{}, fmt.Errorf("emr: %w", err)
	}
	return r, nil
}

// Append appends the record's 1024 bytes to dst.
func (r Record) Append(dst []byte) []byte {
	out, err := binary.Append(dst, binary.LittleEndian, r)
	if err != nil {
		panic(err) // a struct of fixed-size words always encodes
	}
	return out
}

// Serial returns the ESN as people and the cloud see it: 8 lower-case hex digits (VEC-STOR-03).
func (r Record) Serial() string { return fmt.Sprintf("%08x", r.ESN) }

// Factory reports whether the robot has not left the factory yet (part of VEC-STOR-05).
func (r Record) Factory() bool { return r.PackedOut == 0 }

// Released returns when the robot was packed; the zero time if it was not.
func (r Record) Released() time.Time {
	if r.PackedOutDate == 0 {
		return time.Time{}
	}
	return time.Unix(int64(r.PackedOutDate), 0).UTC()
}

// Lot is a lot code taken apart: factory, year, week, variant. The source gives "2 18 36 201" and not how it packs into one word; this
// side reads decimal concatenation, 21836201 (VEC-STOR-06).
type Lot struct{ Factory, Year, Week, Variant int }

// String returns the lot code as people write it, "2 18 36 201".
func (l Lot) String() string {
	return fmt.Sprintf("%d %02d %02d %03d", l.Factory, l.Year%100, l.Week, l.Variant)
}

// Code is the opposite of ParseLot. ok is false if the parts do not fit.
func (l Lot) Code() (code uint32, ok bool) {
	if l.Factory < 1 || l.Factory > 99 || l.Year < 2000 || l.Year > 2099 || l.Week < 1 || l.Week > 53 || l.Variant < 0 || l.Variant > 999 {
		return 0, false
	}
	return uint32(l.Factory*10_000_000 + (l.Year-2000)*100_000 + l.Week*1000 + l.Variant), true
}

// ParseLot takes a lot code apart. ok is false if the parts make no sense; show the raw number then.
func ParseLot(code uint32) (lot Lot, ok bool) {
	lot = Lot{Factory: int(code / 10_000_000), Year: 2000 + int(code/100_000%100), Week: int(code / 1000 % 100), Variant: int(code % 1000)}
	return lot, lot.Factory > 0 && lot.Factory < 100 && lot.Week >= 1 && lot.Week <= 53
}
