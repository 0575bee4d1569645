// Package mtn reads, checks and writes MTN files, the motions that Sony made for its AIBO robots: a header, three strings, a list of joints and keyframes
// of joint angles.
//
//	OMTN                                                        signature, then four blocks: number, length (with both), content
//	0 24 │ sections major.minor count rate options              header, 24 bytes
//	1  n │ name author format                                   three strings: a byte of length and as many characters; padding
//	2  n │ count name name ...                                  the keys of the joints, in the order of the angles; padding
//	3  n │ type, roll pitch yaw angle angle ...                 the first keyframe
//	       interp, roll pitch yaw angle angle ...               every other one, interp+1 frames of 16 ms after the one before
//
// Numbers are little-endian; angles are micro-radian, as AIBO counts them. Files of version 1.0 and 1.1 (ERS-110) have a block 3 whose length is
// 16 bits wide, so that its keyframes begin two bytes earlier.
//
// Parse takes bytes to a File and Append takes it back to the same bytes, whatever their layout: a File keeps what it does not know, and a Layout says where
// the bytes differ from what the writer would choose. JSON and text forms are in text.go and json.go.
//
// The source is the motion file page of dogsbodynet.com and what real files contain. Its doubts, and what was decided:
//   - Lengths are "normally 8 byte aligned", but the page's own example has one of 52. The writer pads lengths to 4, in version 1.0 not at all; the
//     reader takes any (MTN-05, MTN-40).
//   - The page gives each keyframe a time and three words of zeros. The first of them is in truth the type of the data, and the three words are the
//     body's roll, pitch and yaw (MTN-30, MTN-31).
//   - The page has no rounding rule for degrees; its example was truncated toward zero, and so is ours (MTN-34).
//   - A rate of 0 (all files of ERS-110) means 16 ms, as any other value does to the vendor's player (MTN-14).
//   - Names of joints may be wrong or doubled in real files, so a joint is known by its place too (MTN-26, MTN-27).
package mtn
