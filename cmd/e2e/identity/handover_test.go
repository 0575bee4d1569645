package identity

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"kennel/cmd/e2e/housetest"
)

// acceptHandOver takes the robot that is offered to the person.
func acceptHandOver(p *housetest.CtlUser) {
	p.House.T.Helper()
	var offers []struct{ ID string }
	p.JSON(&offers, "my", "transfers")
	if len(offers) != 1 {
		p.House.T.Fatalf("%s is offered %+v, want one robot", p.Email, offers)
	}
	p.Must("my", "accept", offers[0].ID)
}

// plant leaves words of a person in a robot: where its parts and its other programs keep them.
func plant(t *testing.T, root, word string) {
	t.Helper()
	const persistent, cache = "data/data/com.anki.victor/persistent/", "data/data/com.anki.victor/cache/"
	for _, name := range []string{persistent + "photos/1/full.jpg", persistent + "faces/ann", persistent + "kennel/profile_id", cache + "voice/utterance.wav",
		cache + "outgoing/fault-916.log.gz", cache + "vic-logmgr/agentd.log", cache + "vic-logmgr/robotd.log", cache + "vic-logmgr/victor-1.log.gz",
		"data/panics/1.txt", "data/fault-reports/1.txt", "data/kennel/timer.json", "data/etc/localtime", "data/a-part-of-tomorrow/file", "run/claim-code", "var/log/messages"} {
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		f, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600) // logs are open
		if err == nil {
			_, err = f.WriteString(word + "\n")
			err = errors.Join(err, f.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// free waits until no file of a robot has a word in it.
func free(t *testing.T, root, word, what string) {
	t.Helper()
	took := housetest.Await(t, time.Minute, what, func() error {
		return filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				if errors.Is(err, fs.ErrNotExist) {
					return nil
				}
				return err
			}
			b, err := os.ReadFile(name)
			if err == nil && bytes.Contains(b, []byte(word)) {
				err = fmt.Errorf("%s has words of the former owner", strings.TrimPrefix(name, root))
			}
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			return err
		})
	})
	t.Logf("%s: %v", what, took.Round(time.Millisecond))
}

// TestHandOver: a robot that becomes another's, or loses its owner, forgets its owner, online and when it was away; it keeps its name, its key and its way to
// the cloud, and gives its next owner nothing of the former one.
func TestHandOver(t *testing.T) {
	h := housetest.New(t, "-robots", "1")
	h.Start()
	id := h.AwaitPresent(1)[0]
	root := h.RobotRoot(id)
	ann, bob := h.NewCtlUser("ann@example.org"), h.NewCtlUser("bob@example.org")
	ann.Must("my", "claim", housetest.ShownCode(t, root))
	awaitStep(t, root, "token", "waiting no_token")
	token, _ := ann.Exchange(root, "app")
	awaitStep(t, root, "token", "ok")
	name, err := os.ReadFile(filepath.Join(root, "data/etc/robot.name"))
	if err != nil {
		t.Fatal(err)
	}

	// Online: from ann to bob.
	const annsWord, bobsWord = "ANN-WAS-HERE", "BOB-WAS-HERE"
	plant(t, root, annsWord)
	ann.Must("my", "transfer", id, bob.Email, "-password-file", ann.Password)
	acceptHandOver(bob)
	free(t, root, annsWord, "the robot has forgotten ann")
	awaitStep(t, root, "token", "waiting no_token") // it is bob's, who has no app
	if _, err := housetest.Agentd(t, root, token, "authorized"); err == nil {
		t.Error("ann's app is let in")
	}
	if after, err := os.ReadFile(filepath.Join(root, "data/etc/robot.name")); err != nil || !bytes.Equal(name, after) {
		t.Errorf("the robot's name was %q and is %q, %v", name, after, err)
	}

	// The robot is away: from bob to ann.
	h.AwaitPresent(1)
	bob.Must("jdocs", "set", id, "vic.RobotSettings", "eye_color=3")
	housetest.FileHas(t, root, "eye_color", 3)
	var state struct{ Pids map[string]int }
	if err := housetest.ReadJSON(filepath.Join(root, "run/sim.json"), &state); err != nil || state.Pids["agentd"] == 0 {
		t.Fatalf("%+v, %v", state, err)
	}
	if err := syscall.Kill(state.Pids["agentd"], syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	plant(t, root, bobsWord)
	housetest.EditSetting(t, root, "default_location", bobsWord)
	bob.Must("my", "transfer", id, ann.Email, "-password-file", bob.Password)
	acceptHandOver(ann)
	if err := syscall.Kill(state.Pids["agentd"], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	free(t, root, bobsWord, "the robot has forgotten bob")
	awaitStep(t, root, "token", "waiting no_token")
	var doc json.RawMessage
	if err := h.CtlJSON(&doc, "jdocs", "get", id, "vic.RobotSettings"); err != nil || bytes.Contains(doc, []byte(bobsWord)) {
		t.Errorf("what bob changed while the robot was away is among ann's settings: %s, %v", doc, err)
	}

	// Released: it has no owner, and shows that it may be claimed.
	plant(t, root, annsWord)
	ann.Must("my", "release", id)
	free(t, root, annsWord, "the robot has forgotten ann again")
	bob.Must("my", "claim", housetest.ShownCode(t, root))
	if got := bob.Robots(); len(got) != 1 || got[0] != id {
		t.Errorf("bob owns %v, want %s", got, id)
	}
}
