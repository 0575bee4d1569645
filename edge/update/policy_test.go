package update

import (
	"slices"
	"testing"

	"kennel/ota"
)

// TestAllow is the version check of figure 132, step by step (VEC-OTA-10), with the base of a delta and the robot of a factory update
// (VEC-OTA-11, VEC-OTA-12).
func TestAllow(t *testing.T) {
	home := Unit{Running: "2.0.0.5", QSN: "abc"}
	dev := Unit{Running: "2.0.0.5d", Development: true, QSN: "abc"}
	free, rescue := dev, home
	free.AllowDowngrade, rescue.Recovery = true, true
	homeFree := home
	homeFree.AllowDowngrade = true
	for _, tt := range []struct {
		name string
		unit Unit
		o    Offer
		want ota.Code
	}{
		{"newer", home, Offer{Version: "2.0.0.6"}, ota.Done},
		{"same", home, Offer{Version: "2.0.0.5"}, ota.WrongVersion},
		{"older", home, Offer{Version: "1.9.9.9"}, ota.WrongVersion},
		{"suffix", home, Offer{Version: "2.0.0.6d"}, ota.WrongVersion},
		{"ud on d", dev, Offer{Version: "2.0.0.6ud", Development: true}, ota.WrongVersion},
		{"a release candidate for a robot at home", home, Offer{Version: "2.0.0.6", Development: true}, ota.WrongKind},
		{"production for a development robot", dev, Offer{Version: "2.0.0.6d"}, ota.WrongKind},
		{"development", dev, Offer{Version: "2.0.0.6d", Development: true}, ota.Done},
		{"downgrade", free, Offer{Version: "1.0.0.1ud", Development: true}, ota.Done},
		{"downgrade, production", free, Offer{Version: "1.0.0.1"}, ota.WrongKind},
		{"downgrade at home", homeFree, Offer{Version: "1.0.0.1"}, ota.WrongVersion},
		{"downgrade in recovery", rescue, Offer{Version: "1.0.0.1"}, ota.Done},
		{"development in recovery", rescue, Offer{Version: "1.0.0.1d", Development: true}, ota.WrongKind},
		{"delta", home, Offer{Version: "2.0.0.6", Base: "2.0.0.5"}, ota.Done},
		{"delta from another version", home, Offer{Version: "2.0.0.6", Base: "2.0.0.4"}, ota.WrongBase},
		{"factory", home, Offer{Version: "2.0.0.6", Factory: true, QSN: "abc"}, ota.Done},
		{"factory of another", home, Offer{Version: "2.0.0.6", Factory: true, QSN: "abd"}, ota.WrongUnit},
		{"factory of none", home, Offer{Version: "2.0.0.6", Factory: true}, ota.WrongUnit},
		{"for another", home, Offer{Version: "2.0.0.6", QSN: "abd"}, ota.WrongUnit},
	} {
		if got := ota.CodeOf(tt.unit.Allow(tt.o)); got != tt.want {
			t.Errorf("%s: code %d, want %d", tt.name, got, tt.want)
		}
	}
}

// TestAddresses covers VEC-OTA-17 and VEC-OTA-18.
func TestAddresses(t *testing.T) {
	unit := Unit{Running: "2.0.0.5"}
	for _, tt := range []struct {
		name string
		env  Env
		unit Unit
		want []string
		code ota.Code
	}{
		{"auto", Env{BaseURL: "https://o/vic/prod/", Type: "diff", URL: "auto"}, unit,
			[]string{"https://o/vic/prod/diff/2.0.0.5.ota", "https://o/vic/prod/full/latest.ota"}, ota.Done},
		{"full", Env{BaseURL: "https://o/vic/prod", Type: "full"}, unit, []string{"https://o/vic/prod/full/latest.ota"}, ota.Done},
		{"recovery", Env{BaseURL: "https://o"}, Unit{Running: "0.9.0.1", Recovery: true}, []string{"https://o/full/latest.ota"}, ota.Done},
		{"shard", Env{BaseURL: "https://o", Shard: "s7", Sharding: true, Type: "full"}, unit, []string{"https://o/s7/full/latest.ota"}, ota.Done},
		{"shard unused", Env{BaseURL: "https://o", Shard: "s7", Type: "full"}, unit, []string{"https://o/full/latest.ota"}, ota.Done},
		{"development", Env{BaseURL: "https://o", DevBaseURL: "https://d", Type: "full"}, Unit{Running: "1.0.0.1d", Development: true},
			[]string{"https://d/full/latest.ota"}, ota.Done},
		{"development's, at home", Env{BaseURL: "https://o", DevBaseURL: "https://d", Type: "full"}, unit, []string{"https://o/full/latest.ota"}, ota.Done},
		{"one", Env{BaseURL: "https://o", URL: "https://x/1.ota"}, unit, []string{"https://x/1.ota"}, ota.Done},
		{"none", Env{URL: "auto"}, unit, nil, ota.BadURL},
	} {
		if got, err := tt.env.Addresses(tt.unit); !slices.Equal(got, tt.want) || ota.CodeOf(err) != tt.code {
			t.Errorf("%s: %q, %v; want %q, code %d", tt.name, got, err, tt.want, tt.code)
		}
	}
}
