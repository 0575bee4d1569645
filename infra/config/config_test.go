package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

type sample struct {
	Listen string `koanf:"listen"`
	MQTT   struct {
		URL  string        `koanf:"url"`
		Keep time.Duration `koanf:"keep_alive"`
	} `koanf:"mqtt"`
	Quota Size     `koanf:"quota"`
	Roles []string `koanf:"roles"`
}

func load(t *testing.T, body string, environ ...string) (sample, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "c.yaml")
	if err := os.WriteFile(file, []byte(body), 0o600); err != nil {
		t.Fatal(err)
	}
	var s sample
	s.Listen = ":1"
	s.MQTT.Keep = time.Second
	err := Load(&s, file, "KENNEL_", environ)
	return s, err
}

func TestLaterWins(t *testing.T) {
	s, err := load(t, "mqtt: {url: a, keep_alive: 5s}\nquota: 64MiB\nroles: [api, bridge]\n", "KENNEL_MQTT_URL=b", "PATH=x")
	if err != nil {
		t.Fatal(err)
	}
	if s.Listen != ":1" || s.MQTT.URL != "b" || s.MQTT.Keep != 5*time.Second || s.Quota != 64<<20 || len(s.Roles) != 2 {
		t.Errorf("got %+v", s)
	}
}

func TestMistakesAreNamed(t *testing.T) {
	for body, want := range map[string]string{
		"mqtt: {ulr: a}":        `unknown setting "mqtt.ulr"; did you mean mqtt.url?`,
		"quota: many":           "size",
		"mqtt: {keep_alive: x}": "duration",
		"a: [":                  "yaml",
		"mqtt: 3":               "mqtt",
	} {
		if _, err := load(t, body); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: err = %v, want one with %q", body, err, want)
		}
	}
	if _, err := load(t, "", "KENNEL_MQTT_ULR=b"); err == nil || !strings.Contains(err.Error(), "KENNEL_MQTT_ULR") {
		t.Errorf("err = %v", err)
	}
}

func FuzzLoad(f *testing.F) {
	f.Add("mqtt: {url: a}\nquota: 1MiB")
	f.Fuzz(func(t *testing.T, body string) { _, _ = load(t, body) })
}
