package registry

import (
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"kennel/infra/sourcetest"
)

// spoken are the codes that packages give to robots that are refused: string literals where those packages name a code.
func spoken(t *testing.T) map[string]string {
	t.Helper()
	word := regexp.MustCompile(`^[a-z]+(_[a-z]+)*$`)
	out := map[string]string{}
	keep := func(file, text string) {
		if word.MatchString(text) {
			out[text] = filepath.Base(file)
		}
	}
	at := sourcetest.Places{Calls: map[string]int{"Coded": 1, "noLonger": 0, "unproved": 0, "badToken": 0, "notOwner": 0, "burnt": 0, "turn": 1, "step": 3},
		Names: func(name string) bool { return strings.HasPrefix(name, "Code") }}
	for _, pattern := range []string{"../../../certs/*.go", "../../identity/token/*.go", "../../identity/owner/*.go", "../../identity/account/apps.go", "../../originals/door/*.go", "../../identity/consent/*.go", "../../telemetry/das/robots.go", "../../../infra/mqtt/brokerapi/*.go", "device.go"} {
		at.Texts(t, pattern, keep)
	}
	at.Pairs = true // {an error of a library, the code for it}
	at.Texts(t, "../../identity/token/verify.go", keep)
	return out
}

// atDesks are codes that only people at a desk or a web page get as an answer, or that a peer hears in place of the exact one: no step has them.
var atDesks = []string{"batch_malformed", "certificate_id", "claim_refused", "code_malformed", "code_refused", "csv_broken_off", "csv_refused", "days_range", "delivery_running", "email_already_verified", "email_malformed", "index_unknown",
	"key_malformed", "name_long", "name_malformed", "no_app", "no_factory_certificates", "no_gateway", "no_session_certificate", "no_thing", "no_token", "no_transfer", "not_waiting", "other_signup", "recipient_malformed", "recipient_self",
	"right_missing", "right_unknown", "second_factor", "session_over", "thing_exists", "unknown_batch"}

// TestEveryRefusalHasAdvice is issue 4, build 5: every refusal code has advice that tells people what to do.
func TestEveryRefusalHasAdvice(t *testing.T) {
	codes := spoken(t)
	for _, must := range []string{"secret_mismatch", "secret_of_other", "foreign_factory", "batch_disabled", "tls", "session_used", "app_key_missing", "certificate_refused", "code_dead", "token_expired", "token_signature"} {
		if codes[must] == "" {
			t.Errorf("%s was not found in the packages: this test has lost its eyes", must)
		}
	}
	for code, file := range codes {
		if advice[code] == "" && !slices.Contains(atDesks, code) {
			t.Errorf("%s gives code %q: want a line in advice, or in atDesks if no robot's step has it", file, code)
		}
	}
	for code, text := range advice {
		if strings.HasSuffix(text, ".") || text == "" || text[:1] != strings.ToUpper(text[:1]) {
			t.Errorf("advice for %s %q: want a sentence without its full stop", code, text)
		}
	}
	for _, code := range slices.Sorted(maps.Keys(advice)) {
		if codes[code] == "" && !slices.Contains([]string{"malformed", "internal", "unavailable", "deadline_exceeded"}, code) {
			t.Errorf("advice for %q, which nobody says", code)
		}
	}
}
