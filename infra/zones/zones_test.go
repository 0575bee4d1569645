package zones

import (
	"strings"
	"testing"
	"time"
)

// TestList: each zone exists, and no two have one name.
func TestList(t *testing.T) {
	seen := map[string]string{}
	for _, z := range All() {
		if _, err := time.LoadLocation(z.ID); err != nil {
			t.Errorf("%s: %v", z.ID, err)
		}
		if other := seen[plain(z.Label())]; other != "" {
			t.Errorf("%s and %s are both called %s", z.ID, other, z.Label())
		}
		seen[plain(z.Label())] = z.ID
		if got, err := Find(z.Label()); err != nil || got != z.ID {
			t.Errorf("%s finds %s, %v", z.Label(), got, err)
		}
		if got, err := Find(z.ID); err != nil || got != z.ID {
			t.Errorf("%s finds %s, %v", z.ID, got, err)
		}
	}
	if len(seen) < 400 {
		t.Errorf("%d zones", len(seen))
	}
}

func TestFind(t *testing.T) {
	for typed, want := range map[string]string{
		"Berlin": "Europe/Berlin", " berlin, GERMANY ": "Europe/Berlin", "europe/berlin": "Europe/Berlin", "new york": "America/New_York", "Austria": "Europe/Vienna",
		"UTC": "UTC", "Etc/GMT+3": "Etc/GMT+3", "Port au Prince": "America/Port-au-Prince",
	} {
		if got, err := Find(typed); err != nil || got != want {
			t.Errorf("%q: %s, %v; want %s", typed, got, err, want)
		}
	}
	for typed, want := range map[string]string{
		"": "such as Berlin", "Germany": "Germany has several time zones: choose Berlin, Germany; Busingen", "Berl": "did you mean Berlin, Germany", "United States": "or another one", "Atlantis": "not in the list",
	} {
		if got, err := Find(typed); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %s, %v; want %q", typed, got, err, want)
		}
	}
	if Label("Europe/Berlin") != "Berlin, Germany" || Label("Etc/GMT+3") != "Etc/GMT+3" {
		t.Error(Label("Europe/Berlin"), Label("Etc/GMT+3"))
	}
}

func TestParseRefuses(t *testing.T) {
	for _, text := range []string{"Germany", " = Europe/Berlin", "Germany = Berlin", "Germany = Europe/", "Germany = Europe/Berlin,Europe/Rome"} {
		if got, err := parse(text); err == nil {
			t.Errorf("%q: %v", text, got)
		}
	}
}

// FuzzFind: any input is a zone or a refusal with a reason, and a zone that was found is found again.
func FuzzFind(f *testing.F) {
	for _, s := range []string{"Berlin", "", "Côte d'Ivoire", "a/b", "\x00/\xff", "united"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, typed string) {
		id, err := Find(typed)
		if err != nil {
			return
		}
		if again, err := Find(id); err != nil || again != id {
			t.Fatalf("%q is %q, which is %q, %v", typed, id, again, err)
		}
	})
}
