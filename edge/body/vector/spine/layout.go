package spine

// Layout gives the offsets of the fields of data frames that the book and genuine programs place differently; all others are the same.
//
//	              Genuine  Book
//	head to body
//	  lights           16    24
//	body to head
//	  power flags      70    72
//	  range block      74    76   sigma, range, signal, ambient, SPADs, samples
type Layout uint8

// The layouts.
const (
	Genuine Layout = iota // recorded from, and read in, genuine programs of the head
	Book                  // as printed in sections 12.4 and 12.5 of the rows' source
)

// lights returns the offset of the lights in the head's payload.
func (l Layout) lights() int {
	if l == Book {
		return afterMotors + 8
	}
	return afterMotors
}

// blockSize is the length of the power flags and the range block, with the bytes between them.
const blockSize = 16

// power returns the offset of the power flags in the body's payload, and of the two unexplained bytes at one of the ends of their block.
func (l Layout) power() (block, gap int) {
	if l == Book {
		return 72, 70
	}
	return 70, 86
}
