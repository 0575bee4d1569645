package artifact

import (
	"strings"
	"testing"

	"kennel/ota/manifest"
)

const sum = "0f1e2d3c4b5a69788796a5b4c3d2e1f00f1e2d3c4b5a69788796a5b4c3d2e1f0"

// TestKeys: a key says what its archive is, and says it back.
func TestKeys(t *testing.T) {
	for want, a := range map[string]Artifact{
		"ota/vic/2.0.1.6076/production-0f1e2d3c4b5a6978.ota":   {Kind: manifest.Production},
		"ota/vic/2.0.1.6076/factory-0f1e2d3c4b5a6978.ota":      {Kind: manifest.Factory, QSN: "00e20100"},
		"ota/vic/2.0.1.6076/1.8.0.6051ud-0f1e2d3c4b5a6978.ota": {Kind: manifest.Delta, Base: "1.8.0.6051ud"},
	} {
		a.Species, a.Version, a.SHA256 = "vic", "2.0.1.6076", sum
		if a.Key() != want {
			t.Errorf("%+v: %s, want %s", a, a.Key(), want)
		}
		if species, version, start, err := ParseKey(want); err != nil || species != "vic" || version != "2.0.1.6076" || start != sum[:16] {
			t.Errorf("%s is %s %s %s, %v", want, species, version, start, err)
		}
	}
	for _, bad := range []string{"", "ota", "ota/vic/x.ota", "ota/vic/1.0.0.0/full.ota", "ota/a/b/c/d-e.ota", "das/vic/2.0.1.6076/x-y.ota"} {
		if _, _, _, err := ParseKey(bad); err == nil {
			t.Errorf("%q is a key", bad)
		}
	}
}

// FuzzParseKey: what is read of a key is in it.
func FuzzParseKey(f *testing.F) {
	f.Add("ota/vic/2.0.1.6076/production-0f1e2d3c4b5a6978.ota")
	f.Fuzz(func(t *testing.T, key string) {
		species, version, start, err := ParseKey(key)
		if err == nil && (!strings.HasPrefix(key, "ota/"+species+"/"+version+"/") || !strings.Contains(key, "-"+start)) {
			t.Errorf("%q: %q %q %q", key, species, version, start)
		}
	})
}
