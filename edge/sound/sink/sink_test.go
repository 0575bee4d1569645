package sink

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"kennel/edge/sound"
	"kennel/infra/testwait"
	"kennel/infra/wav"
)

const rate = 16_000

func newMixer(t *testing.T) *sound.Mixer {
	t.Helper()
	m, err := sound.NewMixer(sound.Config{Rate: rate})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// steady is a sound of one value, so that any piece of it can be told.
func steady(t *testing.T, m *sound.Mixer) {
	t.Helper()
	if _, err := m.Play(&sound.Sound{Rate: rate, Samples: slices.Repeat([]float32{0.25}, rate)}, sound.Options{Loops: sound.Forever}); err != nil {
		t.Fatal(err)
	}
}

// TestFile: a file has what was mixed, and is whole; of a program that died it is read as far as it goes.
func TestFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "a.wav")
	m := newMixer(t)
	steady(t, m)
	f, err := Create(name, rate)
	if err != nil {
		t.Fatal(err)
	}
	if err := Render(m, f, 3*rate/2); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if s, err := wav.Parse(b); err != nil || len(s.Samples) < rate {
		t.Errorf("before Close: %v", err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	b, err = os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	s, err := wav.ParseWhole(b)
	if err != nil || len(s.Samples) != 3*rate/2 || s.Samples[rate] < 8180 || s.Samples[rate] > 8200 {
		t.Errorf("%v", err)
	}
	f.bytes = wav.Endless
	if err := f.Write([]int16{1}); !errors.Is(err, ErrLong) {
		t.Errorf("full: %v", err)
	}
	if _, err := Create(filepath.Join(name, "b"), rate); err == nil {
		t.Error("created below a file")
	}
}

// TestRun: the mixer is asked at the pace of time, and a sink that fails ends it.
func TestRun(t *testing.T) {
	m := newMixer(t)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	began := time.Now()
	b := NewBroadcast(rate)
	if err := Run(ctx, m, b); err != nil {
		t.Fatal(err)
	}
	took := time.Since(began)
	if played := time.Duration(m.Position()) * time.Second / rate; played > took+Lead+2*Block {
		t.Errorf("%v of sound in %v", played, took)
	}
	if m.Position() == 0 || b.join() != nil {
		t.Errorf("position %d; the sink is not closed", m.Position())
	}
	if err := Run(t.Context(), m, NewTee(broken{})); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("broken: %v", err)
	}
	two := NewTee(broken{}, NewBroadcast(rate))
	if err := two.Write([]int16{1}); err != nil || len(two.sinks) != 1 {
		t.Errorf("one of two broken: %v", err)
	}
}

type broken struct{}

func (broken) Write([]int16) error { return io.ErrUnexpectedEOF }
func (broken) Close() error        { return nil }

// player starts a shell as a player, and returns what Changed tells.
func player(t *testing.T, script string) (*Program, chan error) {
	t.Helper()
	told := make(chan error, 100)
	p, err := NewProgram(slog.New(slog.DiscardHandler), "/bin/sh", []string{"-c", script}, func(err error) { told <- err })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() }) // also after the test's own
	return p, told
}

// TestProgram: a player gets the samples; when it is killed that is told, sounds are dropped meanwhile without waiting, and the next one plays on (part of VEC-SND-13).
func TestProgram(t *testing.T) {
	dir := t.TempDir()
	p, told := player(t, `echo $$ >>`+dir+`/pids; exec cat >>`+dir+`/out`)
	m := newMixer(t)
	steady(t, m)
	if err := Render(m, p, rate); err != nil {
		t.Fatal(err)
	}
	pids := func() []string {
		b, _ := os.ReadFile(dir + "/pids") // it may not be there yet
		return strings.Fields(string(b))
	}
	testwait.Until(t, 20*time.Second, "the player has the samples", func() error {
		b, _ := os.ReadFile(dir + "/out") // likewise
		return want(len(b) == 2*rate)
	})
	pid, err := strconv.Atoi(pids()[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := testwait.For(t, told, "the state of the player"); !errors.Is(err, ErrPlayer) {
		t.Errorf("told %v", err)
	}
	if err := p.Write(make([]int16, 100)); err != nil {
		t.Error(err)
	}
	if err := testwait.For(t, told, "the state of the player"); err != nil {
		t.Errorf("told %v", err)
	}
	testwait.Until(t, 20*time.Second, "the next player has samples", func() error {
		if err := Render(m, p, 160); err != nil {
			t.Fatal(err)
		}
		b, _ := os.ReadFile(dir + "/out") // it was there before
		return want(len(pids()) == 2 && len(b) > 2*rate)
	})
	b, err := os.ReadFile(dir + "/out")
	if err != nil {
		t.Fatal(err)
	}
	for at := 2 * rate; at+2 <= len(b); at += 2 { // no sample was cut in half
		if v := int16(binary.LittleEndian.Uint16(b[at:])); v != 0 && (v < 8180 || v > 8200) {
			t.Fatalf("sample %d is %d", at/2, v)
		}
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	if len(told) != 0 {
		t.Errorf("its end told %v", <-told)
	}
}

// TestStuckProgram: a player that takes nothing is killed and started again.
func TestStuckProgram(t *testing.T) {
	p, told := player(t, "exec sleep 1000")
	for len(told) == 0 {
		if err := p.Write(make([]int16, 160)); err != nil {
			t.Fatal(err)
		}
	}
	if err := testwait.For(t, told, "the state of the player"); !errors.Is(err, ErrPlayer) || p.Dropped() == 0 {
		t.Errorf("told %v, %d samples dropped", err, p.Dropped())
	}
}

// TestNoProgram: a program that is not there is an error, and so is a machine without players, which names the remedy.
func TestNoProgram(t *testing.T) {
	if _, err := NewProgram(slog.New(slog.DiscardHandler), "/no/such/player", nil, nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	if _, _, err := FindPlayer(rate); err == nil || !strings.Contains(err.Error(), "alsa-utils") {
		t.Errorf("no player: %v", err)
	}
	if err := os.WriteFile(dir+"/aplay", []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if path, args, err := FindPlayer(rate); err != nil || path != dir+"/aplay" || !slices.Contains(args, "16000") {
		t.Errorf("%s %v %v", path, args, err)
	}
}

// TestBroadcast: a client hears what is played from when it came; more than MaxListeners are refused, one that does not read is dropped.
func TestBroadcast(t *testing.T) {
	b := NewBroadcast(rate)
	server := httptest.NewServer(b)
	defer server.Close()
	resp, err := http.Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	head := make([]byte, 44)
	if _, err := io.ReadFull(resp.Body, head); err != nil || !slices.Equal(head, wav.AppendHeader(nil, rate, 1, wav.Endless)) || resp.Header.Get("Content-Type") != "audio/wav" {
		t.Fatalf("header %q, %v", head, err)
	}
	m := newMixer(t)
	steady(t, m)
	if err := Render(m, b, 4096); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 2*4096)
	if _, err := io.ReadFull(resp.Body, got); err != nil || int16(binary.LittleEndian.Uint16(got[8000:])) != 8192 {
		t.Errorf("%v, sample %d", err, int16(binary.LittleEndian.Uint16(got[8000:])))
	}
	for b.Listeners() < MaxListeners {
		b.join()
	}
	full, err := http.Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	full.Body.Close()
	if full.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("status %d", full.StatusCode)
	}
	for range int(behind/Block) + 1 { // the others read nothing
		if err := b.Write(make([]int16, 10)); err != nil {
			t.Fatal(err)
		}
	}
	if n := b.Listeners(); n > 1 {
		t.Errorf("%d listeners that do not read are left", n)
	}
	b.Close()
	testwait.Until(t, 20*time.Second, "the stream ends", func() error {
		_, err := resp.Body.Read(make([]byte, 4096))
		return want(err != nil)
	})
}

// want returns an error unless ok.
func want(ok bool) error {
	if !ok {
		return errors.New("not yet")
	}
	return nil
}
