package square

import (
	"bytes"
	"os"
	"strings"
	"testing"
)

// TestReadme: the README shows this very program. It runs on both bodies in edge/app/robotapp (TestSquare).
func TestReadme(t *testing.T) {
	code, err := os.ReadFile("square.go")
	if err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile("../../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, body, found := strings.Cut(string(code), "func Drive(")
	if !found || !bytes.Contains(readme, []byte("func Drive("+body)) {
		t.Errorf("the README shows another program than this:\nfunc Drive(%s", body)
	}
}
