// Package delta makes and applies the payload of a delta update: delta.bin, the content of apq8009-robot-delta.bin.gz. It turns the BOOT and SYSTEM
// images of the running slot (the base) into those of the other slot (the new images). The original format is not described (VEC-OTA-11), so this one
// is Kennel's own. All numbers are big-endian unless they are varints as in encoding/binary.
//
//	header   "KNLDELTA", version 1 (1 byte), number of images (1 byte, 1 to 8)
//	         for each image: length of its name (1 byte), name, base size (8), SHA-256 of the base, new size (8), SHA-256 of the new image
//	         CRC-32C of the header (4)
//	chunks   of all images in order, each image without gaps from its start to its end:
//	         image (1), offset in the new image (8), size n (4, at most 8 MiB), size of ranges (4), size of patch (4),
//	         SHA-256 of the prediction, SHA-256 of the result, ranges, patch, CRC-32C of the chunk (4)
//
// A chunk starts from a prediction of n bytes. It is zero, except for what its ranges copy from the base. A range is three varints: how many bytes of
// the prediction stay zero before it, its length, and its start in the base relative to the end of the range before (signed; the first range counts from
// the chunk's offset). No range at all makes a chunk independent of the base.
//
// The patch is added to the prediction byte by byte, modulo 256. An empty patch changes nothing. Otherwise it is one zstd frame that holds: length of
// the steps (varint), steps, addends. A step is two varints: how many bytes to leave, and to how many to add the next addends.
//
// Programs are why bytes are added rather than replaced. If a program grows at its start, everything behind moves, and so does every address in it: few
// bytes of the old program can be copied unchanged, but the differences of moved code are nearly all zero, and the rest repeat (C. Percival, Naive
// Differences of Executable Code, 2003). A rebuilt kenneld costs a tenth of zstd -3 --patch-from that way.
//
// No chunk needs another, so that an update that was cut off continues at the first chunk that the target does not hold yet.
package delta
