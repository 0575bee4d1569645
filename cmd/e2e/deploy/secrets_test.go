package deploy

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kennel/cmd/e2e/housetest"
)

// TestSecretSearch: the search finds what is planted.
func TestSecretSearch(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"secrets/postgres": "correct-horse-battery\n", "ca/root.key": "-----BEGIN PRIVATE KEY-----\n" + strings.Repeat("A", 64) + "\n-----END PRIVATE KEY-----\n",
		"robots/r/factory/kennel/claim.json": `{"thing":"vic:1","secret":"ABCDEFGHIJKLMNOP"}`, "secrets/first-passwords.json": `{"operator@kennel.local":"abcd-efgh-ijkl"}`,
		"log/good.log": "nothing here", "log/a.log": "password correct-horse-battery", "log/b.log": "key " + strings.Repeat("A", 64), "log/c.log": "claim ABCDEFGHIJKLMNOP",
		"log/d.log": "with kst_abcdefgh12", "log/e.log": "one-time abcd-efgh-ijkl", "log/f.log": "jwt eyJhbGciOiJFUzI1NiIsInR5.eyJ0b2tlbl9pZCI6",
	} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var s housetest.SecretSearch
	s.Learn(dir)
	found, read := s.Logs(dir)
	if len(s.Secrets) != 4 || read != 7 || len(found) != 6 {
		t.Errorf("%d secrets, %d logs, found %q", len(s.Secrets), read, found)
	}
}
