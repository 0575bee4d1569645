package robotapp

import (
	"os"
	"strings"
	"syscall"
	"testing"

	"kennel/edge/body/vector/factory/emr"
	"kennel/edge/body/vector/vectorsim"
)

// TestFactory: VEC-CLI-01, part of VEC-CLI-03, part of VEC-STOR-05: on the charging pad robotd answers the
// factory's command line only if it is told to, and only on a robot that has not left the factory.
func TestFactory(t *testing.T) {
	for name, tc := range map[string]struct {
		packed uint32
		args   []string
		want   string
	}{
		"in the factory": {args: []string{"-factory"}, want: "<esn 00e20100\r\n<bsv 2.1.0-test\r\n"},
		"not told to":    {},
		"packed":         {packed: 1, args: []string{"-factory"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.board = vectorsim.New(vectorsim.Config{Version: "2.1.0-test", Factory: true})
			root, err := os.OpenRoot(b.root)
			if err != nil {
				t.Fatal(err)
			}
			defer root.Close()
			if err := emr.Write(root, emr.Record{ESN: 0x00e20100, PackedOut: tc.packed}, true); err != nil {
				t.Fatal(err)
			}
			b.powerOn()
			p := b.start(nil, append([]string{"-device", b.device}, tc.args...)...)
			b.await("a head", func(s vectorsim.State) bool { return s.Heard > 20 }) // its loop runs
			b.board.PadRead()                                                       // the banner
			b.board.PadWrite(">esn\r>bsv\r")
			from := b.board.State().Heard
			b.await("an answer", func(s vectorsim.State) bool { return s.Heard > from+40 })
			if said := b.board.PadRead(); said != tc.want {
				t.Errorf("it says %q, want %q", said, tc.want)
			}
			if code := p.end(syscall.SIGTERM); code != 0 {
				t.Errorf("exit code %d", code)
			}
			if told := strings.Contains(p.log.String(), "has left the factory"); told != (tc.packed != 0) {
				t.Errorf("says that it has left the factory: %v", told)
			}
		})
	}
}
