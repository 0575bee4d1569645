package pleo_test

import (
	"testing"
	"time"

	"kennel/edge/body/pleo/pleosim"
)

const needy = `#include <Drive.inc>
#include <Property.inc>
forward hunger_eval(); forward companionship_eval();
public init() {
	set(property_mood, 2);
	set(property_fatigue, -40);
	drive_add("hunger", -25, 30, 100);
	drive_add("companionship", 0, 10, 100);
}
public hunger_eval() return 12
public companionship_eval() return 77
main() for (;;) sleep 1000;
`

// TestMood: the drives of an application and the properties that scripts agree on are in the tree, with the names of the drives (PLEO-DRV-01, PLEO-DRV-09;
// part of PLEO-PRP-07).
func TestMood(t *testing.T) {
	run(t, pleosim.Config{Card: card(t, map[string]string{"main": needy})}, func(p *place) {
		p.Wait(2 * time.Second)
		name := func(drive string) string {
			var b []byte
			for _, slot := range []string{".val->name", ".val->rest"} {
				for v := uint64(p.Value(drive + slot)); v > 0; v >>= 8 {
					b = append(b, byte(v))
				}
			}
			return string(b)
		}
		for slot, want := range map[string]float64{"mood.val": 2, "mood.val->fatigue": -40, "mood.val->drive": 2, "drive[0].val": 12, "drive[0].val->low": -25,
			"drive[0].val->high": 30, "drive[1].val": 77} {
			if got := p.Value(slot); got != want {
				t.Errorf("%s is %v, want %v", slot, got, want)
			}
		}
		if a, b := name("drive[0]"), name("drive[1]"); a != "hunger" || b != "companionshi" {
			t.Errorf("drives %q and %q", a, b)
		}
		if _, err := p.sim.Eject(); err != nil {
			t.Fatal(err)
		}
		p.Wait(2 * time.Second)
		if got := p.Value("mood.val->drive"); got != 0 || name("drive[0]") != "" || p.Value("drive[1].val") != 0 {
			t.Errorf("without a card drive %v is active, the first is %q", got, name("drive[0]"))
		}
	})
}
