package sim

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"kennel/edge/bodies"
	"kennel/edge/body/bodysim"
	"kennel/edge/body/pleo"
	"kennel/edge/env/platform"
	"kennel/edge/update/cardimage"
	"kennel/infra/testwait"
	"kennel/ota"
	"kennel/ota/manifest"

	"kennel/edge/update/disk"
	"kennel/edge/update/slot"
)

// TestCard: the factory puts a folder on the card of a species with a slot for one, a release replaces it once, and a body without a slot is refused.
func TestCard(t *testing.T) {
	card, dir := t.TempDir(), filepath.Join(t.TempDir(), "robot")
	if err := os.WriteFile(filepath.Join(card, "demo.urf"), []byte("one"), 0o644); err != nil {
		t.Fatal(err)
	}
	b := Birth{Thing: "pleo:00e20100", Secret: "s", RootPEM: testRoot(t), OSVersion: "2.0.0.6074", Card: card, ReleaseKey: []byte("key")}
	for range 2 { // a folder that is there is kept, and its card replaced
		if err := Make(dir, b); err != nil {
			t.Fatal(err)
		}
	}
	on := func(name string) string {
		got, _ := os.ReadFile(filepath.Join(dir, "card", name)) // "": there is none
		return string(got)
	}
	if on("demo.urf") != "one" {
		t.Errorf("on the card: %q", on("demo.urf"))
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close() // nothing buffered
	if id, err := platform.ID(root, bodies.Hardware{}); err != nil || id != b.Thing {
		t.Errorf("%s, %v", id, err)
	}
	body, err := speciesOf(b.Thing)
	if err != nil {
		t.Fatal(err)
	}
	made, err := body.New(bodysim.Place{Root: root, ID: b.Thing, Volts: body.Volts, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	image, err := cardimage.Append([]byte("{\"version\":\"2.0.0.9300\"}\n"), cardimage.Files{"sub/two.urf": []byte("two")})
	if err != nil {
		t.Fatal(err)
	}
	f, err := disk.Of(root).Write(slot.File(manifest.System, slot.A))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt(append(image, bytes.Repeat([]byte("ballast"), 1000)...), 0); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	sys, err := readSystem(disk.Of(root), slot.File(manifest.System, slot.A))
	if err != nil || sys.Card == nil || sys.Version != ota.Version("2.0.0.9300") {
		t.Fatalf("%+v, %v", sys, err)
	}
	exchange := func(version string) {
		if err := made.(bodysim.Carded).Exchange(version, *sys.Card); err != nil {
			t.Fatal(err)
		}
	}
	exchange("2.0.0.9300")
	if on("demo.urf") != "" || on("sub/two.urf") != "two" {
		t.Error("the card does not have the files of the release")
	}
	if err := os.WriteFile(filepath.Join(dir, "card/sub/two.urf"), []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	if exchange("2.0.0.9300"); on("sub/two.urf") != "mine" {
		t.Error("the release overwrites what its owner wrote since")
	}
	if exchange("2.0.0.9301"); on("sub/two.urf") != "two" {
		t.Error("a later release does not")
	}
	if err := Make(filepath.Join(t.TempDir(), "robot"), Birth{Thing: "amigo:00e20100", Card: card}); err == nil {
		t.Error("an AmigoBot has a card")
	}
}

// TestPleoFirmware: the model in the robot's folder says which firmware a simulated Pleo has, and its driver reads it from the body.
func TestPleoFirmware(t *testing.T) {
	for model, want := range map[string]string{"": "1.1", "pleo-1.1": "1.1", "pleo-1.0": "1.0"} {
		dir := filepath.Join(t.TempDir(), "robot")
		b := Birth{Thing: "pleo:00e20100", Secret: "s", RootPEM: testRoot(t), OSVersion: "2.0.0.6074", Model: model}
		if err := Make(dir, b); err != nil {
			t.Fatal(err)
		}
		root, err := os.OpenRoot(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer root.Close() // nothing buffered
		kind, err := speciesOf(b.Thing)
		if err != nil {
			t.Fatal(err)
		}
		made, err := kind.New(bodysim.Place{Root: root, ID: b.Thing, Volts: kind.Volts, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- made.On(ctx) }()
		device := filepath.Join(dir, pleo.DefaultDevice)
		testwait.Until(t, time.Minute, "its port", func() error { _, err := os.Stat(device); return err })
		d, err := pleo.Open(ctx, pleo.Config{Device: device, Timeout: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		if got := d.Describe().Firmware; got != want {
			t.Errorf("model %q has firmware %q, want %q", model, got, want)
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
		if stop(); <-ended != nil {
			t.Error("the body ends with an error")
		}
	}
	if err := Make(filepath.Join(t.TempDir(), "robot"), Birth{Thing: "pleo:00e20100", Model: "pleo-2.0", RootPEM: testRoot(t)}); err == nil {
		t.Error("a model that is not there is made")
	}
}
