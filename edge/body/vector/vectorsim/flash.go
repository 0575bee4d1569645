package vectorsim

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/rand/v2"

	"kennel/edge/body/vector/spine"
)

// The processor's program memory: pages, the first of them the boot-loader's; own defaults without a row.
const (
	flashSize     = 64 << 10 // VEC-HW-20, VEC-DFU-03
	flashPage     = 1 << 10  // VEC-DFU-03: a block
	loaderSize    = 8 << 10
	programMost   = flashSize - loaderSize
	erasedByte    = 0xff
	pagesAPeriod  = 1 // 56 pages take 0.29 s; the data sheet's 20 to 40 ms a page would be 5 times that
	wordsAPeriod  = 64
	blockWordSize = 4 // VEC-DFU-03
)

// The simulated boot-loader's format of a program, an own default: a head of magic, size and version, and a signature at the end (VEC-BOOT-04,
// VEC-HW-23). How the real one signs is not known.
const (
	imageMagic = "KSIM"
	imageHead  = len(imageMagic) + 4 + 16
	imageLeast = imageHead + ed25519.SignatureSize
)

// signer is the key of all simulated firmware. It is public, as this source is: a signature proves only that a program arrived intact.
var signer = func() ed25519.PrivateKey {
	seed := sha256.Sum256([]byte("vectorsim firmware"))
	return ed25519.NewKeyFromSeed(seed[:])
}()

// Image returns a firmware file that the simulated boot-loader starts: 16 bytes of version, then a program of size bytes, filled as seed
// says. It panics on a size or version that cannot be: that is a mistake in the program.
func Image(version string, size int, seed uint64) []byte {
	if len(version) > 16 || size < imageLeast || size > programMost || size%blockWordSize != 0 {
		panic(fmt.Sprintf("vectorsim: image of version %q with %d bytes: want at most 16 bytes of version, and %d to %d by 4", version, size,
			imageLeast, programMost))
	}
	var id [16]byte
	copy(id[:], version)
	file := append(make([]byte, 0, 16+size), id[:]...)
	file = binary.LittleEndian.AppendUint32(append(file, imageMagic...), uint32(size))
	file = append(file, id[:]...)
	rng := rand.New(rand.NewPCG(seed, 0x6669726d))
	for len(file) < 16+size-ed25519.SignatureSize {
		file = append(file, byte(rng.Uint32()))
	}
	return append(file, ed25519.Sign(signer, file[16:])...)
}

// FlashFaults are what can go wrong in the program memory.
type FlashFaults struct {
	EraseRefused    int // erasures to refuse
	WriteRefused    int // blocks to refuse
	ValidateRefused int // validations to refuse
	Worn            int // erasures after which one byte has not become 0xFF: the program is not sound then
}

// flash is the program memory beyond the boot-loader, and the boot-loader's state. Its content outlives the power.
type flash struct {
	cells  [programMost]byte
	faults FlashFaults

	sound   bool // there is a program with a good signature
	version [16]byte

	// Without power these are gone.
	erased bool // since power on: blocks are taken
	job    job
	page   int // next to erase
	block  spine.Firmware
	word   int // next to write
}

// job is the boot-loader's current work. It hears nothing meanwhile, because the processor halts while its flash is written.
type job uint8

const (
	idle job = iota
	erasing
	writing
)

func (f *flash) load(file []byte) {
	for i := range f.cells {
		f.cells[i] = erasedByte
	}
	copy(f.cells[:], file[16:])
}

func (f *flash) clear() { f.load(make([]byte, 16)) }

// powerOn is the boot-loader's first look: is there a program? (VEC-BOOT-04)
func (f *flash) powerOn() {
	f.erased, f.job = false, idle
	f.inspect()
}

func (f *flash) inspect() {
	f.sound = false
	c := f.cells[:]
	if string(c[:len(imageMagic)]) != imageMagic {
		return
	}
	size := int(binary.LittleEndian.Uint32(c[len(imageMagic):]))
	if size < imageLeast || size > len(c) {
		return
	}
	signed := size - ed25519.SignatureSize
	f.sound = ed25519.Verify(signer.Public().(ed25519.PublicKey), c[:signed], c[signed:size])
	f.version = [16]byte(c[len(imageMagic)+4:])
}

// erase begins to erase the program; false: refused.
func (f *flash) erase() bool {
	if f.faults.EraseRefused > 0 {
		f.faults.EraseRefused--
		return false
	}
	f.job, f.page, f.sound, f.erased = erasing, 0, false, false
	return true
}

// write begins to write a block. It refuses one that does not fit, or that would change a cell which is not erased.
func (f *flash) write(m *spine.Firmware) bool {
	n := int(m.Words) * blockWordSize
	if !f.erased || int(m.Offset)%blockWordSize != 0 || int(m.Offset)+n > len(f.cells) {
		return false
	}
	if f.faults.WriteRefused > 0 {
		f.faults.WriteRefused--
		return false
	}
	for i, b := range m.Data[:n] {
		if c := f.cells[int(m.Offset)+i]; c != erasedByte && c != b {
			return false
		}
	}
	f.job, f.block, f.word = writing, *m, 0
	return true
}

// step works for a period and reports whether the job is finished in it.
func (f *flash) step() bool {
	switch f.job {
	case erasing:
		for range pagesAPeriod {
			for i := range flashPage {
				f.cells[f.page*flashPage+i] = erasedByte
			}
			f.page++
		}
		if f.page*flashPage < len(f.cells) {
			return false
		}
		if f.faults.Worn > 0 {
			f.faults.Worn--
			f.cells[imageHead] = 0
		}
		f.erased = true
	case writing:
		for range wordsAPeriod {
			if f.word == int(f.block.Words) {
				break
			}
			at := f.word * blockWordSize
			for i := range blockWordSize {
				f.cells[int(f.block.Offset)+at+i] &= f.block.Data[at+i] // flash only clears bits
			}
			f.word++
		}
		if f.word < int(f.block.Words) {
			return false
		}
	}
	f.job = idle
	return true
}

// validate reports whether the memory holds a valid program.
func (f *flash) validate() bool {
	if f.faults.ValidateRefused > 0 {
		f.faults.ValidateRefused--
		return false
	}
	f.inspect()
	return f.sound
}
