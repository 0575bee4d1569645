package swu_test

import (
	"bytes"
	"errors"
	"io"
	"os/exec"
	"strings"
	"testing"
	"testing/iotest"

	"kennel/ota"
	"kennel/ota/swu"
	"kennel/ota/swu/swutest"
)

// TestCheck: what the system's format allows passes, and each fault is named with its code.
func TestCheck(t *testing.T) {
	good := string(swutest.Pack("sw-description", "software = {}", "script.sh", "#!/bin/sh\nexit 0\n", "empty", ""))
	change := func(old, now string) string { return strings.Replace(good, old, now, 1) }
	for name, tt := range map[string]struct {
		file string
		code ota.Code
		want string
	}{
		"good":                {good, ota.Done, ""},
		"newc without sums":   {strings.ReplaceAll(good, "070702", "070701"), ota.Done, ""},
		"without padding":     {strings.TrimRight(good, "\x00") + "\x00\x00\x00\x00", ota.Done, ""},
		"empty":               {"", ota.BadArchive, "in the middle of the header"},
		"no cpio":             {"PK" + good, ota.BadArchive, "magic"},
		"no file":             {string(swutest.Pack()), ota.BadArchive, "sw-description first"},
		"another first":       {string(swutest.Pack("script.sh", "x", "sw-description", "y")), ota.WrongOrder, "script.sh"},
		"description twice":   {string(swutest.Pack("sw-description", "x", "sw-description", "y")), ota.BadArchive, "a second"},
		"way out":             {string(swutest.Pack("sw-description", "x", "a/../../etc/passwd", "y")), ota.BadArchive, "leads out"},
		"from the root":       {string(swutest.Pack("sw-description", "x", "/etc/passwd", "y")), ota.BadArchive, "leads out"},
		"changed byte":        {change("exit 0", "exit 1"), ota.BadArchive, "has checksum"},
		"no hex":              {"070702zzzzzzzz" + good[14:], ota.BadArchive, "header field 1"},
		"name of 4 GB":        {good[:94] + "ffffffff" + good[102:], ota.BadArchive, "name of 4294967295 bytes"},
		"no name":             {good[:94] + "00000000" + good[102:], ota.BadArchive, "name of 0 bytes"},
		"zero within a name":  {change("script.sh", "scr\x00pt.sh"), ota.BadArchive, "zero byte"},
		"file of 4 GB":        {good[:54] + "ffffffff" + good[62:], ota.BadArchive, "ends in the middle"},
		"cut":                 {good[:len(good)/2], ota.BadArchive, "ends in the middle"},
		"data after the last": {good + "x", ota.BadArchive, "data after"},
		"zeros without end":   {good + strings.Repeat("\x00", 70<<10), ota.BadArchive, "data after"},
	} {
		err := swu.Check(strings.NewReader(tt.file))
		if got := ota.CodeOf(err); got != tt.code || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want code %d and %q", name, err, tt.code, tt.want)
		}
	}
	broken := errors.New("the line is down")
	if err := swu.Check(io.MultiReader(strings.NewReader(good[:200]), iotest.ErrReader(broken))); !errors.Is(err, broken) {
		t.Errorf("a read that fails: %v", err)
	}
	if !swu.Is([]byte(good)) || swu.Is([]byte("07070")) || swu.Is([]byte("ustar-")) {
		t.Error("Is")
	}
}

// TestEveryPrefix: a file that was cut anywhere before its last padding is refused.
func TestEveryPrefix(t *testing.T) {
	good := bytes.TrimRight(swutest.Pack("sw-description", "software = {}", "a", "bc"), "\x00")
	for n := range good {
		if err := swu.Check(bytes.NewReader(good[:n])); ota.CodeOf(err) != ota.BadArchive {
			t.Fatalf("%d of %d bytes: %v", n, len(good), err)
		}
	}
}

// TestJudge: SWUpdate itself takes the file that passes here, and refuses those that do not.
func TestJudge(t *testing.T) {
	signer := swutest.NewSigner(t)
	good := signer.Script(t, "1.0.0.1", "#!/bin/sh\nexit 0\n", []byte("more"))
	for name, file := range map[string][]byte{
		"good": good, "magic": append([]byte("0x"), good[2:]...), "another first": append(swutest.Pack("a", "b")[:120], good...),
		"changed byte": bytes.Replace(good, []byte("exit 0"), []byte("exit 1"), 1),
	} {
		dir := t.TempDir()
		swutest.Write(t, dir+"/x.swu", file)
		cmd := exec.CommandContext(t.Context(), "swupdate", "-n", "-k", signer.Certificate(), "-H", "kennel:1.0", "-l", "2", "-i", dir+"/x.swu")
		cmd.Env = append(cmd.Environ(), "TMPDIR="+dir)
		out, exit := cmd.CombinedOutput()
		// It sometimes exits with 1 after a success: what it says counts.
		theirs := bytes.Contains(out, []byte("SWUPDATE successful"))
		if ours := swu.Check(bytes.NewReader(file)); (ours == nil) != theirs || theirs != (name == "good") {
			t.Errorf("%s: here %v, SWUpdate %v, %v\n%s", name, ours, theirs, exit, out)
		}
	}
}

func FuzzCheck(f *testing.F) {
	f.Add(swutest.Pack("sw-description", "software = {}", "a", "bc"))
	f.Add([]byte("070701"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if err := swu.Check(bytes.NewReader(b)); err == nil && !bytes.Contains(b, []byte("sw-description\x00")) {
			t.Errorf("%q passes", b)
		}
	})
}
