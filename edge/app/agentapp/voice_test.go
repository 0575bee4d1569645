package agentapp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"kennel/edge/agent/host"
	"kennel/edge/agent/localapi"
	"kennel/edge/agent/voice"
	"kennel/infra/cli"
	"kennel/infra/testwait"
)

// TestVoiceWatchPrintsWhatIsNew (30.5): agentd voice watch begins with the next event, unless it is asked for those that are kept.
func TestVoiceWatchPrintsWhatIsNew(t *testing.T) {
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	type request struct {
		After  uint64 `json:"after"`
		WaitMS int    `json:"wait_ms"`
	}
	type answer struct {
		Events []voice.Event `json:"events"`
		Last   uint64        `json:"last"`
	}
	const before, end = 3, 5 // events that there were, and the one that ends the watch
	h := host.New(host.Robot{Root: root, Log: slog.New(slog.DiscardHandler)})
	watch := localapi.Answer(func(_ context.Context, r request) (a answer, err error) {
		if a.Last = before; r.After <= before {
			a.Last = before + 1
			for seq := r.After + 1; seq <= a.Last; seq++ {
				a.Events = append(a.Events, voice.Event{Seq: seq, At: time.Now()})
			}
		} else if r.After < end {
			err = errors.New("enough")
		}
		return a, err
	})
	if err := h.Add(host.Part{Name: "voice", Local: map[string]http.Handler{"POST /voice/watch": watch}}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- localapi.Part(h).Services[0].Run(ctx) }()
	defer func() {
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
	}()
	testwait.Until(t, testwait.Long, "the socket", func() error { _, err := os.Stat(dir + "/run/kennel-agent/socket"); return err })
	for _, tc := range []struct {
		args []string
		want string
	}{{nil, "4"}, {[]string{"-after", "0"}, "1 2 3 4"}, {[]string{"-after", "2"}, "3 4"}} {
		code, out, errOut := runCommand(dir, "", append([]string{"voice", "watch", "-o", "json"}, tc.args...)...)
		var got []string
		for d := json.NewDecoder(strings.NewReader(out)); d.More(); {
			var e voice.Event
			if err := d.Decode(&e); err != nil {
				t.Fatal(err, out)
			}
			got = append(got, fmt.Sprint(e.Seq))
		}
		if strings.Join(got, " ") != tc.want || code == cli.ExitOK {
			t.Errorf("%v: events %v, code %d, %s; want %s", tc.args, got, code, errOut, tc.want)
		}
	}
}
