package sysmode

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"kennel/edge/body/amigobot/flash"
	"kennel/edge/body/amigobot/sip"
)

// Numbers of requests (AMIGO-OPEN-02).
const (
	Hello byte = 0xE0 + iota
	ReadParams
	WriteParam
	Commit
	Erase
	WritePage
	Verify
	Leave
)

// PageSize is the most bytes that WritePage takes.
const PageSize = 128

// erased is the value of a byte of FLASH after Erase.
const erased = 0xFF

const (
	done byte = iota
	refused
)

// Region is a part of the memory that is erased and loaded as a whole.
type Region struct {
	Name string
	Base uint32
	Size int
}

// The regions of the memory (AMIGO-DL-03).
var (
	Program = Region{"program", 0, 64 << 10}
	Sounds  = Region{"sounds", 0x200000, 1 << 20}
)

// Holds reports whether n bytes at address are in r.
func (r Region) Holds(address uint32, n int) bool {
	return address >= r.Base && n >= 0 && int64(address)-int64(r.Base)+int64(n) <= int64(r.Size)
}

// RegionAt returns the region that has a byte at address.
func RegionAt(address uint32) (Region, bool) {
	for _, r := range []Region{Program, Sounds} {
		if r.Holds(address, 1) {
			return r, true
		}
	}
	return Region{}, false
}

// Memory is the FLASH of a robot.
type Memory struct {
	Version string       // of AmigOS
	Params  flash.Values // stored
	Program []byte
	Sounds  []byte

	edited flash.Values
}

// NewMemory returns the memory of a robot with erased regions.
func NewMemory(version string, params flash.Values) *Memory {
	m := &Memory{Version: version, Params: params, edited: params, Program: make([]byte, Program.Size), Sounds: make([]byte, Sounds.Size)}
	wipe(m.Program)
	wipe(m.Sounds)
	return m
}

// Image returns the stored parameters as an image (package flash).
func (m *Memory) Image() []byte { return flash.AppendImage(nil, &m.Params) }

// Load replaces the stored parameters by those of an image; flash.ErrImage is in the error's chain if it is none, and then they are all zero.
func (m *Memory) Load(image []byte) (err error) {
	m.Params, err = flash.ParseImage(image)
	return err
}

func wipe(b []byte) {
	for i := range b {
		b[i] = erased
	}
}

// Event says which request has completed.
type Event uint8

// The events for which a robot acts: it stores the parameters, stores a region, or resets.
const (
	None     Event = iota
	Saved          // Commit has changed Params
	Verified       // a region is loaded and checked
	Left           // System mode is over
)

// Handle carries out the request in payload and returns the payload of the reply, nil if payload is no request of System mode, such as a
// command of a client (AMIGO-DL-07).
func (m *Memory) Handle(payload []byte) ([]byte, Event) {
	if len(payload) < 2 || payload[0] < Hello || payload[0] > Leave {
		return nil, None
	}
	reply := []byte{payload[0], payload[1], done}
	result, event, err := m.do(payload[0], payload[2:])
	if err != nil {
		reply[2] = refused
		reply = append(reply, err.Error()...)
		return reply[:min(len(reply), sip.MaxPayload)], None
	}
	return append(reply, result...), event
}

func (m *Memory) do(number byte, args []byte) (result []byte, event Event, err error) {
	switch number {
	case Hello:
		m.edited = m.Params
		return []byte(m.Version), None, nil
	case ReadParams:
		return m.Image(), None, nil
	case WriteParam:
		if len(args) == 0 || args[0] >= byte(flash.Count) {
			return nil, None, fmt.Errorf("parameter number: want 0 to %d", flash.Count-1)
		}
		return nil, None, m.edited.Set(flash.Key(args[0]).String(), string(args[1:]))
	case Commit:
		m.Params = m.edited
		return nil, Saved, nil
	case Leave:
		m.edited = m.Params
		return nil, Left, nil
	}
	// The others begin with an address.
	if len(args) < 4 {
		return nil, None, fmt.Errorf("request of %d bytes: want an address", len(args))
	}
	le := binary.LittleEndian
	address, args := le.Uint32(args), args[4:]
	region, ok := RegionAt(address)
	if !ok {
		return nil, None, fmt.Errorf("no memory at %#x", address)
	}
	memory, n, checksum := m.Program, len(args), uint32(0)
	if region == Sounds {
		memory = m.Sounds
	}
	switch {
	case number == Erase:
		wipe(memory)
		return nil, None, nil
	case number == Verify && len(args) == 8:
		n, checksum = int(le.Uint32(args)), le.Uint32(args[4:])
	case number == Verify || n == 0 || n > PageSize:
		return nil, None, fmt.Errorf("request of %d bytes: want a page of 1 to %d bytes, or length and checksum", n, PageSize)
	}
	if !region.Holds(address, n) {
		return nil, None, fmt.Errorf("%d bytes at %#x end after the %s", n, address, region.Name)
	}
	cells := memory[address-region.Base:][:n]
	if number == Verify {
		if got := crc32.ChecksumIEEE(cells); got != checksum {
			return nil, None, fmt.Errorf("memory at %#x has checksum %08x, want %08x", address, got, checksum)
		}
		return nil, Verified, nil
	}
	for i, c := range cells {
		if c != erased && c != args[i] {
			return nil, None, fmt.Errorf("memory at %#x is not erased", address)
		}
	}
	copy(cells, args)
	return nil, None, nil
}
