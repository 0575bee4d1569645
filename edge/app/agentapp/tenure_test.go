package agentapp

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"strings"
	"testing"
	"time"

	"kennel/edge/agent/host"
	"kennel/edge/agent/ownership/tenure"
	"kennel/infra/api/commandwire"
	"kennel/infra/api/events"
	"kennel/infra/api/topics"
	"kennel/infra/cli"
	"kennel/infra/testwait"
)

// contents returns the digests of a robot's plain files that are not empty.
func contents(t *testing.T, root *os.Root) map[string][sha256.Size]byte {
	t.Helper()
	out := map[string][sha256.Size]byte{}
	if err := fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		b, err := root.ReadFile(name)
		if len(b) > 0 {
			out[name] = sha256.Sum256(b)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return out
}

// own lists what agentd writes of the robot itself: it outlives a change of owner as it is. All else that it writes in its life goes.
var own = map[string]string{
	"data/etc/robot.name":           "drawn by lot",
	"data/etc/robot.pem":            "the robot's key for its apps",
	"data/vic-gateway/gateway.cert": "and its certificate",
	"persist/kennel/device.key":     "which robot this is",
}

// TestLifeLeavesNothing: of all files that agentd writes while it lives with an owner, none is as it was after the robot became another's, but those in
// own; and no word of the owner's is in any. A part that writes elsewhere than in the user data fails this test until it says why its file is not its
// owner's.
func TestLifeLeavesNothing(t *testing.T) {
	const word = "ANN-WAS-HERE"
	dir, root := born(t, nil)
	before := contents(t, root)
	a := newAgent(t, dir, root, nil)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	awaitCommand(t, dir, "", "want module.name", "event", "poked")
	testwait.Until(t, time.Minute, "an event by command", testwait.Holds(func() bool {
		code, _, _ := runCommand(dir, "", "event", "robot.poked", word)
		return code == cli.ExitOK
	}))
	a.people.Look() // no cloud answers
	a.Publish(host.Consent{Owned: true, UserID: "ann", DataCollection: true})
	for _, err := range []error{
		a.Set(t.Context(), map[string]json.RawMessage{"default_location": json.RawMessage(`"` + word + `"`)}),
		a.Keep(t.Context(), events.Event{Source: "test", Name: "robot.poked", S1: word}),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	command, err := commandwire.Command{ID: "0192e4f1-7d5a-7c3e-9f00-000000000001", Kind: commandwire.Ping, ExpiresInMS: 60_000, GivenUS: 1}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	a.Down()[topics.Cmd](command)
	for _, args := range [][]string{{"log", "send", "-diagnostics"}, {"trace", "-seconds", "1"}} {
		if code, _, errOut := runCommand(dir, "", args...); code != cli.ExitOK {
			t.Fatalf("%v: %s", args, errOut)
		}
	}
	testwait.Until(t, time.Minute, "the robot's name and the command's record", testwait.Holds(func() bool {
		_, err := root.Stat("data/kennel/commands/0192e4f1-7d5a-7c3e-9f00-000000000001.json")
		return err == nil && a.people.Name() != ""
	}))
	stop()
	if err := testwait.For(t, done, "the end of agentd"); err != nil {
		t.Fatal(err)
	}
	// The robot's other programs keep things of a person, too.
	for _, name := range []string{"photos/1/full.jpg", "faces/ann", "token/token.jwt", "jdocs/" + word + ".json"} {
		if err := errors.Join(root.MkdirAll(path.Dir("data/data/com.anki.victor/persistent/"+name), 0o755), root.WriteFile("data/data/com.anki.victor/persistent/"+name, []byte(word), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	life := contents(t, root)

	k, err := tenure.Open(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, user := range []string{"ann", "bob"} {
		if _, err := k.Learn(user); err != nil {
			t.Fatal(err)
		}
	}
	if ended, err := tenure.Resume(tenure.Config{Root: root, Log: slog.New(slog.DiscardHandler)}); err != nil || !ended {
		t.Fatal(ended, err)
	}
	after, written := contents(t, root), 0
	for name, sum := range life {
		if before[name] == sum {
			continue
		}
		if written++; after[name] == sum && own[name] == "" && !strings.HasPrefix(name, "data/kennel/commands/") {
			t.Errorf("%s outlives the owner in whose time agentd wrote it", name)
		}
	}
	if written < 15 {
		t.Errorf("agentd wrote %d files in its life: the test sees too little", written)
	}
	newAgent(t, dir, root, nil) // the next owner's
	for name := range contents(t, root) {
		if b, err := root.ReadFile(name); err != nil || strings.Contains(string(b), word) || strings.Contains(name, word) {
			t.Errorf("%s has words of the former owner, %v", name, err)
		}
	}
}
