package mtn

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
	"os"
	"regexp"
	"strings"
	"testing"
)

var dumpRow = regexp.MustCompile(`(?m)^([0-9a-f]{6}): ((?:[0-9a-f]{2} ){16})`)

// example returns the example of the source from its hex dump, and sees that the rows follow each other.
func example(t testing.TB) []byte {
	t.Helper()
	text, err := os.ReadFile("testdata/example.txt")
	if err != nil {
		t.Fatal(err)
	}
	var out []byte
	for _, m := range dumpRow.FindAllStringSubmatch(string(text), -1) {
		at, err := hex.DecodeString(m[1])
		if err != nil || int(binary.BigEndian.Uint32(append([]byte{0}, at...))) != len(out) {
			t.Fatalf("row %s after %d bytes: %v", m[1], len(out), err)
		}
		row, err := hex.DecodeString(strings.ReplaceAll(m[2], " ", ""))
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, row...)
	}
	const sum = "db419bde54e36a5d1f8a944bd43d51e0d419972054984690456f4aa1ef0f8799"
	if got := sha256.Sum256(out); hex.EncodeToString(got[:]) != sum || len(out) != 784 {
		t.Fatalf("the example has %d bytes and sum %x", len(out), got)
	}
	return out
}

// made returns a motion of a platform with random angles, of as many keyframes.
func made(rnd *rand.Rand, p Platform, minor uint16, keyframes int) *File {
	f := &File{Major: 1, Minor: minor, Rate: 16, Name: "a_stand#stand_made", Author: "kennel", Format: p.Format}
	if minor < 2 {
		f.Rate = 0
	}
	for _, j := range p.Joints {
		f.Joints = append(f.Joints, j.Key)
	}
	for i := range keyframes {
		k := Keyframe{RPY: [3]int32{rnd.Int32() >> 12, -rnd.Int32() >> 12, 0}, Joints: make([]int32, len(f.Joints))}
		if i > 0 {
			k.Interp = rnd.Uint32N(60)
		}
		for j := range k.Joints {
			k.Joints[j] = int32(rnd.IntN(5_000_000) - 2_500_000) // to 143 degrees
		}
		f.Keyframes = append(f.Keyframes, k)
	}
	return f
}

func must(t testing.TB, f *File) []byte {
	t.Helper()
	b, err := Append(nil, f)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
