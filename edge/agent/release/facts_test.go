package release

import (
	"testing"
)

// TestFacts: the numbers and names of the source that the package is built on.
func TestFacts(t *testing.T) {
	for fact, tc := range map[string][2]any{
		"key of who signs (VEC-OTA-05)":        {KeyFile, "anki/etc/ota.pub"},
		"password of images (VEC-OTA-07)":      {PasswordFile, "anki/etc/ota.pas"},
		"rebooting, by Bluetooth (VEC-MSG-16)": {rebooting, 4},
	} {
		if tc[0] != tc[1] {
			t.Errorf("%s: %v, want %v", fact, tc[0], tc[1])
		}
	}
}
