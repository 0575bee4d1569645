package logging

import (
	"fmt"
	"strings"
	"testing"
)

func TestSecretsStayOut(t *testing.T) {
	var b strings.Builder
	log, err := New(&b, "info", "text")
	if err != nil {
		t.Fatal(err)
	}
	s := Secret("hunter2")
	log.Info("login", "token", s)
	fmt.Fprintf(&b, "%v %s %#v %+v", s, s, s, struct{ S Secret }{s})
	if strings.Contains(b.String(), "hunter2") {
		t.Errorf("secret printed: %s", b.String())
	}
	if _, err := New(&b, "loud", ""); err == nil {
		t.Error("level loud accepted")
	}
}
