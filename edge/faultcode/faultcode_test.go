package faultcode

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestAnnexF holds the tables against the list: the same codes in each domain, each with a text and the class of its range.
func TestAnnexF(t *testing.T) {
	f, err := os.Open("testdata/annex-f.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	listed := map[Domain]map[Code]bool{System: {}, Playpen: {}, Rampost: {}}
	byName := map[string]Domain{"system": System, "playpen": Playpen, "rampost": Rampost}
	for sc := bufio.NewScanner(f); sc.Scan(); {
		if strings.HasPrefix(sc.Text(), "#") {
			continue
		}
		var domain, class string
		var code Code
		if _, err := fmt.Sscan(sc.Text(), &domain, &code, &class); err != nil {
			t.Fatalf("line %q: %v", sc.Text(), err)
		}
		d, ok := byName[domain]
		if !ok {
			t.Fatalf("line %q: no domain %q", sc.Text(), domain)
		}
		listed[d][code] = true
		if !d.Known(code) || d.Text(code) == "" {
			t.Errorf("%s %v: listed, but has no text", d, code)
		}
		if got := d.Class(code).String(); got != class {
			t.Errorf("%s %v: class %s, want %s", d, code, got, class)
		}
	}
	for d, codes := range listed {
		if len(codes) == 0 {
			t.Errorf("%s: nothing listed", d)
		}
		for _, c := range d.Codes() {
			if !codes[c] {
				t.Errorf("%s %v: in the table, but not listed", d, c)
			}
		}
	}
}

func TestUnknownCodeIsShownAsItsNumber(t *testing.T) {
	for c, want := range map[Code]string{0: "fault 000", 7: "fault 007", 899 + 9: "fault 908", 65535: "fault 65535"} {
		if got := c.Text(); got != want {
			t.Errorf("Text(%d) = %q, want %q", uint16(c), got, want)
		}
	}
	if got := Domain(9).Text(1); got != "fault 001" {
		t.Errorf("unknown domain: %q", got)
	}
}

func TestDomainsOverlap(t *testing.T) {
	if a, b := Playpen.Text(16), Rampost.Text(16); a == b {
		t.Errorf("playpen and rampost 16 read the same: %q", a)
	}
	if got := BodySilent.String(); got != "898" {
		t.Errorf("BodySilent = %s", got)
	}
}

// TestPlaypenTexts: the 100 results of the factory's test are those of table 604, by the sum of their texts; a few are written out (VEC-FLT-02).
func TestPlaypenTexts(t *testing.T) {
	for code, want := range map[Code]string{0: "Not possible", 1: "Passed playpen", 8: "Still on charger", 10: "Check cliff slot in playpen", 45: "did not pass", 91: "front right", 99: "Run robot through previous fixtures"} {
		if got := Playpen.Text(code); !strings.Contains(got, want) {
			t.Errorf("%v: %q, want %q in it", code, got, want)
		}
	}
	sum := sha256.New()
	codes := Playpen.Codes()
	for i, c := range codes {
		if int(c) != i {
			t.Fatalf("code %v after %d others", c, i)
		}
		fmt.Fprintln(sum, c, Playpen.Text(c))
	}
	const want = "1c7cff07289c28e741a21f456236da57f43acea8a2d5e5fc3211ef84d39d5e82"
	if got := hex.EncodeToString(sum.Sum(nil)); got != want || len(codes) != 100 {
		t.Errorf("%d texts with the sum %s, want 100 with %s: compare them with the table", len(codes), got, want)
	}
}
