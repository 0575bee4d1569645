package holdfile

import "testing"

// FuzzFiles: what is read as a note or a journal halts the robot, by a hold that can be shown or by a peer, or says that a note is over.
func FuzzFiles(f *testing.F) {
	for _, s := range []string{`{"by":"op","reason":"x","since":"2026-01-02T03:04:05Z"}`, `{"peer":true}`, `{"held":true,"since":"2026-01-02T03:04:05Z"}`,
		`{"over":"2026-01-02T03:04:05Z"}`, `{}`, ``} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if n, err := ParseNote(b); err == nil && n.Check() != nil && (!n.Peer || n.Held != Held{}) {
			t.Fatalf("%s reads as %+v", b, n)
		}
		if j, err := ParseJournal(b); err == nil && !j.Held && !j.Peer && j.Over == nil {
			t.Fatalf("%s reads as %+v", b, j)
		}
	})
}
