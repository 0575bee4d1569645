package host

import (
	"strings"
	"testing"
)

const demo = `native blink(times)
new total
add(n) {
	total += n
	return total
}
main() {
	for (new i = 1; i <= 3; i++)
		add(i)
	printf("%d\n", total)
	blink(2)
	sleep 5
	new empty[2]
	return empty[total - 4]
}
`

// run continues a session until it pauses or ends.
func run(t *testing.T, s *Session, step bool) (r Report) {
	t.Helper()
	out := ""
	for range 1000 {
		r = s.Run(1000, step)
		if out += r.Output; r.State != Running {
			r.Output = out
			return r
		}
	}
	t.Fatal("it neither pauses nor ends")
	return r
}

// TestSession: a script runs to its end with what it prints, calls and sleeps; an error in it has its line; it pauses at breakpoints and steps, with its variables.
func TestSession(t *testing.T) {
	s, messages, err := New([]byte(demo))
	if err != nil || s == nil {
		t.Fatal(messages, err)
	}
	r := run(t, s, false)
	if want := "6\nN blink(2)\nS sleep pri=5\n"; r.State != Ended || r.Output != want || r.Code != 4 || r.Line != 14 || r.Function != "main" || r.Why == "" {
		t.Errorf("%+v, want the output %q and error 4 in line 14", r, want)
	}
	if again := s.Run(1000, false); again.State != Ended || again.Output != "" {
		t.Errorf("after its end: %+v", again)
	}
	s, _, err = New([]byte(demo))
	if err != nil {
		t.Fatal(err)
	}
	s.Break(4)
	values := map[string]string{}
	if r = run(t, s, false); r.State != Paused || r.Line != 4 || r.Function != "add" {
		t.Fatalf("%+v, want a pause in line 4 of add", r)
	}
	for _, v := range r.Variables {
		values[v.Name] = v.Value
	}
	if values["n"] != "1" || values["total"] != "0" {
		t.Errorf("variables %v", values)
	}
	if r = run(t, s, true); r.State != Paused || r.Line != 5 {
		t.Errorf("a step leads to %+v, want line 5", r)
	}
	if r = run(t, s, false); r.State != Paused || r.Line != 4 {
		t.Errorf("continued: %+v, want line 4 again", r)
	}
	s.Break()
	s.Watch("total", "nothing")
	if r = run(t, s, false); r.State != Paused || r.Why != "total changed from 1 to 3" || r.Line != 5 {
		t.Errorf("a change of total: %+v", r)
	}
	s.Watch("total")
	if r = run(t, s, false); r.State != Paused || r.Why != "total changed from 3 to 6" || r.Line != 5 {
		t.Errorf("the next change of total: %+v", r)
	}
	s.Watch()
	if r = run(t, s, false); r.State != Ended || !strings.HasPrefix(r.Output, "6\n") {
		t.Errorf("without breakpoints: %+v", r)
	}
}

// TestRefused: errors have their line and column; a script that never ends costs its slices and bounded output, and one that is too large is refused.
func TestRefused(t *testing.T) {
	s, messages, err := New([]byte("main() {\n\tnew counter = 1\n\tcuonter = counter\n}\n"))
	if s != nil || err != nil || len(messages) != 1 || messages[0].Number != 17 || messages[0].Line != 3 || messages[0].Column != 2 {
		t.Errorf("%+v, %v", messages, err)
	}
	if s, messages, err = New([]byte("#include <secret>\nmain() {}\n")); s != nil || err != nil || len(messages) == 0 || messages[0].Number != 100 {
		t.Errorf("a file of the machine: %+v, %v", messages, err)
	}
	if _, _, err = New(make([]byte, MaxScript+1)); err == nil {
		t.Error("a script that is too large is taken")
	}
	if s, _, err = New([]byte("forward other()\npublic other() return 1\n")); err == nil {
		t.Errorf("without main: %v", s)
	}
	if s, messages, err = New([]byte("main() { for (;;) printf(\"%s\", \"endless \"); }\n")); err != nil || s == nil {
		t.Fatal(messages, err)
	}
	size := 0
	for range 20 {
		r := s.Run(100_000, false)
		if size = max(size, len(r.Output)); r.State != Running {
			t.Fatalf("%+v", r)
		}
	}
	if size == 0 || size > MaxOutput+100 {
		t.Errorf("a slice prints %d bytes", size)
	}
}
