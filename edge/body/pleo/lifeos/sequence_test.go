package lifeos

import (
	"bytes"
	"strings"
	"testing"
)

// TestReadSequences: a tree is read as it was written, and a file that is none is refused with its line.
func TestReadSequences(t *testing.T) {
	file := []byte(sequenceHead + "\n1 6 -1\n2 8 77\n3 13 0\n2 7 5\n1 9 -1\n")
	nodes, err := readSequences(file)
	if err != nil || len(nodes) != 6 || nodes[1].id != 6 || nodes[2].action != 77 || len(nodes[1].children) != 2 || len(nodes[0].children) != 2 {
		t.Fatalf("%+v, %v", nodes, err)
	}
	if again := appendSequences(nil, nodes); !bytes.Equal(again, file) {
		t.Errorf("written as %q", again)
	}
	for text, want := range map[string]string{"": "empty", "words\n": "line 1", "\n2 6 1\n": "line 2", "\n1 6 1\n3 6 1\n": "line 3", "\n1 6\n": "line 2", "\n1 6 -2\n": "line 2",
		"\n1 6 1\n1 6 1\n": "twice", strings.Repeat("\n1 6 1\n1 7 1", 1) + "\n0 6 1\n": "line 4"} {
		if strings.HasPrefix(text, "\n") {
			text = sequenceHead + text
		}
		if _, err := readSequences([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	if nodes, err := readSequences([]byte(sequenceHead + "\n" + strings.Repeat("1 6 1\n2 6 1\n", maxSequence))); err == nil {
		t.Errorf("%d nodes are read", len(nodes))
	}
}

// FuzzReadSequences: a tree that can be read is written so that it is read again.
func FuzzReadSequences(f *testing.F) {
	f.Add([]byte(sequenceHead + "\n1 6 -1\n2 8 77\n"))
	f.Fuzz(func(t *testing.T, file []byte) {
		nodes, err := readSequences(file)
		if err != nil {
			return
		}
		once := appendSequences(nil, nodes)
		again, err := readSequences(once)
		if err != nil || !bytes.Equal(appendSequences(nil, again), once) {
			t.Fatalf("%q: %v", once, err)
		}
	})
}
