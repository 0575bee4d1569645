package agefile

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"filippo.io/age"

	"kennel/infra/errs"
)

func pair(t testing.TB) *age.X25519Identity {
	t.Helper()
	id, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func encrypt(t testing.TB, text []byte, to ...age.Recipient) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := Create(&b, to)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func read(file []byte, ids ...age.Identity) ([]byte, bool, error) {
	r, encrypted, err := Open(bytes.NewReader(file), ids)
	if err != nil {
		return nil, encrypted, err
	}
	b, err := io.ReadAll(r)
	return b, encrypted, err
}

// TestEachRecipientOpensIt: any of the keys opens a file, another does not, and without one the refusal says what is missing.
func TestEachRecipientOpensIt(t *testing.T) {
	a, b, other := pair(t), pair(t), pair(t)
	text := bytes.Repeat([]byte("robot "), 30_000)
	file := encrypt(t, text, a.Recipient(), b.Recipient())
	for _, id := range []age.Identity{a, b} {
		if got, encrypted, err := read(file, other, id); !bytes.Equal(got, text) || !encrypted || err != nil {
			t.Errorf("%d bytes, encrypted %v, %v", len(got), encrypted, err)
		}
	}
	if bytes.Contains(file, []byte("robot")) {
		t.Error("the text is in the file")
	}
	if _, _, err := read(file, other); errs.CodeOf(err) != "other_key" {
		t.Errorf("another key: %v", err)
	}
	if _, _, err := read(file); errs.CodeOf(err) != "encrypted" {
		t.Errorf("no key: %v", err)
	}
	open := encrypt(t, text)
	if got, encrypted, err := read(open); !bytes.Equal(got, text) || encrypted || err != nil {
		t.Errorf("plain: %d bytes, encrypted %v, %v", len(got), encrypted, err)
	}
	if _, _, err := read(open, a); errs.CodeOf(err) != "not_encrypted" {
		t.Errorf("a plain file in place of an encrypted one: %v", err)
	}
}

// TestEveryChangeIsCorrupt changes each byte, cuts at each byte, and appends one: every answer names the place and is Corrupt, or says that
// the key does not fit.
func TestEveryChangeIsCorrupt(t *testing.T) {
	id := pair(t)
	file := encrypt(t, []byte("what an instance must not lose"), id.Recipient())
	for at := range file {
		changed := bytes.Clone(file)
		changed[at] ^= 1
		for name, f := range map[string][]byte{"changed": changed, "cut": file[:at]} {
			_, _, err := read(f, id)
			if errs.KindOf(err) != errs.Corrupt && errs.CodeOf(err) != "other_key" {
				t.Fatalf("%s at %d of %d: %v, want corrupt", name, at, len(file), err)
			}
		}
	}
	if _, _, err := read(append(bytes.Clone(file), 0), id); errs.KindOf(err) != errs.Corrupt {
		t.Errorf("a byte too many: %v", err)
	}
	long := encrypt(t, make([]byte, 1<<20), id.Recipient())
	_, _, err := read(long[:700_000], id)
	if err == nil || !strings.Contains(err.Error(), "cut off before byte 700000") {
		t.Errorf("cut at 700000: %v", err)
	}
	long[300_000] ^= 1
	if _, _, err = read(long, id); err == nil || !strings.Contains(err.Error(), "changed before byte 3") {
		t.Errorf("changed at 300000: %v", err)
	}
}

func TestAFailingDiskIsNotACorruptFile(t *testing.T) {
	id, broken := pair(t), errors.New("input/output error")
	file := encrypt(t, make([]byte, 1<<18), id.Recipient())
	r, _, err := Open(io.MultiReader(bytes.NewReader(file[:1<<17]), errReader{broken}), Identities{id})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(r); !errors.Is(err, broken) || errs.KindOf(err) == errs.Corrupt {
		t.Errorf("%v, want %v", err, broken)
	}
}

type errReader struct{ error }

func (e errReader) Read([]byte) (int, error) { return 0, e.error }

// TestKeysInFiles: a private key in the place of a public one is refused and not repeated.
func TestKeysInFiles(t *testing.T) {
	id := pair(t)
	dir := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	public, private := write("public", "# ours\n"+id.Recipient().String()+"\n"), write("private", id.String()+"\n")
	if to, err := ParseRecipients([]string{id.Recipient().String()}, public); len(to) != 2 || err != nil {
		t.Errorf("%d recipients, %v", len(to), err)
	}
	if ids, err := ReadIdentities(private); len(ids) != 1 || err != nil {
		t.Errorf("%d identities, %v", len(ids), err)
	}
	_, err1 := ParseRecipients([]string{id.String()}, "")
	_, err2 := ParseRecipients(nil, private)
	_, err3 := ReadIdentities(public)
	for _, err := range []error{err1, err2, err3} {
		if errs.KindOf(err) != errs.Invalid || strings.Contains(err.Error(), strings.TrimPrefix(id.String(), "AGE-SECRET-KEY-")) {
			t.Errorf("%v, want invalid and no key in it", err)
		}
	}
}

func FuzzOpen(f *testing.F) {
	id := pair(f)
	f.Add(encrypt(f, []byte("x"), id.Recipient()))
	f.Add([]byte(magic + "v1\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if _, encrypted, err := read(b, id); err == nil && !encrypted {
			t.Errorf("%q was taken as encrypted text", b)
		}
	})
}
