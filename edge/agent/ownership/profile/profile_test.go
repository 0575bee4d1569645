package profile

import (
	"encoding/base64"
	"os"
	"testing"

	"kennel/edge/env/robotfs"
)

// TestID is VEC-TOK-09.
func TestID(t *testing.T) {
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	id := func(user string) string {
		t.Helper()
		s, err := ID(root, robotfs.Persistent, user)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	local := id("")
	if raw, err := base64.StdEncoding.DecodeString(local); err != nil || len(raw) != 16 {
		t.Errorf("local id %q: %v", local, err)
	}
	const user = "6f7c1a52-8f0c-4a42-b6f1-1d9f0a1b2c3d"
	if got, _ := base64.StdEncoding.DecodeString(id(user)); string(got) != user {
		t.Errorf("id of an account: %q", got)
	}
	if id("") != local {
		t.Error("the local id does not last")
	}
	for _, damaged := range []string{"", "AAAA", "not base64 at all !!!!!!"} {
		if err := robotfs.WriteFile(root, robotfs.Persistent+"/"+fileName, []byte(damaged), 0o600); err != nil {
			t.Fatal(err)
		}
		next := id("")
		if next == local || next != id("") {
			t.Errorf("%q: %q after %q", damaged, next, local)
		}
		local = next
	}
	if err := root.RemoveAll("data"); err != nil { // a wipe
		t.Fatal(err)
	}
	if id("") == local {
		t.Error("the local id survived the user data")
	}
	if _, err := ID(root, "../out", ""); err == nil {
		t.Error("wrote outside the robot")
	}
}
