package account

import (
	"crypto/rand"
	"fmt"
	"regexp"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"kennel/infra/errs"
	"kennel/infra/logging"
)

// Bounds of what people say about themselves, as the original service had them where it is known.
const (
	maxName     = 100 // characters
	maxApp      = 200
	maxGender   = 20
	maxPlayerID = 40
)

// Profile holds the fields of an owner's record beside the account. Its tags name the table's JSON, not the API's.
type Profile struct {
	AppName            string `json:"app_name,omitempty"` // that signed the owner up
	AppPlatform        string `json:"app_platform,omitempty"`
	AppVersion         string `json:"app_version,omitempty"`
	Born               string `json:"born,omitempty"` // YYYY-MM-DD
	PlayerID           string `json:"player_id,omitempty"`
	EmailFailure       string `json:"-"` // why mail does not arrive; "": it does, as far as we know
	EmailBlocked       bool   `json:"-"`
	Lang               string `json:"lang,omitempty"` // IETF language tag
	Family             string `json:"family,omitempty"`
	Given              string `json:"given,omitempty"`
	Gender             string `json:"gender,omitempty"`
	EmailAccount       bool   `json:"-"`
	NoAutodelete       bool   `json:"-"`
	PasswordComplex    bool   `json:"password_complex,omitempty"`
	Status             string `json:"-"` // active, deleted
	DeactivationReason string `json:"-"`
	PurgeReason        string `json:"-"`
}

// DefaultProfile is the profile of an account without one: an operator made the account and vouches for its e-mail.
func DefaultProfile() Profile { return Profile{EmailAccount: true, Status: "active"} }

// Change is a change to an owner's record; nil leaves a field.
type Change struct {
	Given, Family, Gender, Born, Lang, PlayerID *string
}

// apply checks a change and makes it. Invalid names the field as the record does.
func (p *Profile) apply(c Change) error {
	for _, f := range []struct {
		name string
		to   *string
		want *string
		fix  func(string) (string, error)
	}{
		{"given_name", &p.Given, c.Given, text(maxName)},
		{"family_name", &p.Family, c.Family, text(maxName)},
		{"gender", &p.Gender, c.Gender, text(maxGender)},
		{"dob", &p.Born, c.Born, birthday},
		{"email_lang", &p.Lang, c.Lang, ParseLang},
		{"player_id", &p.PlayerID, c.PlayerID, text(maxPlayerID)},
	} {
		if f.want == nil {
			continue
		}
		v, err := f.fix(strings.TrimSpace(*f.want))
		if err != nil {
			return errs.Coded(errs.Invalid, "invalid_fields", "%s: %w", f.name, err)
		}
		*f.to = v
	}
	return nil
}

// text accepts up to max printable characters.
func text(max int) func(string) (string, error) {
	return func(s string) (string, error) {
		if !utf8.ValidString(s) || utf8.RuneCountInString(s) > max || strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
			return "", fmt.Errorf("want at most %d printable characters", max)
		}
		return s, nil
	}
}

func birthday(s string) (string, error) {
	if s == "" {
		return "", nil
	}
	t, err := time.Parse(time.DateOnly, s)
	if err != nil || t.Year() < 1850 || t.After(time.Now()) {
		return "", fmt.Errorf("%.20q: want a day that has been, as YYYY-MM-DD", s)
	}
	return s, nil
}

var langTag = regexp.MustCompile(`^([A-Za-z]{2,3})(-[A-Za-z]{4})?(-[A-Za-z]{2}|-[0-9]{3})?$`)

// ParseLang reads a language tag of language, script and region, such as en-US or zh-Hant-TW, and returns it in its usual letters; "" for "".
func ParseLang(s string) (string, error) {
	if s == "" {
		return "", nil
	}
	f := langTag.FindStringSubmatch(strings.ReplaceAll(s, "_", "-"))
	if f == nil {
		return "", fmt.Errorf("%.20q: want a language tag such as en-US", s)
	}
	script := strings.ToLower(f[2])
	if script != "" {
		script = "-" + strings.ToUpper(script[1:2]) + script[2:]
	}
	return strings.ToLower(f[1]) + script + strings.ToUpper(f[3]), nil
}

// complexPassword is the original app's rule: 8 to 32 characters, among them a digit, an upper and a lower case letter. It is only noted.
func complexPassword(p logging.Secret) bool {
	n := utf8.RuneCountInString(string(p))
	has := func(f func(rune) bool) bool { return strings.ContainsFunc(string(p), f) }
	return n >= 8 && n <= 32 && has(unicode.IsDigit) && has(unicode.IsUpper) && has(unicode.IsLower)
}

// Record is the owner's account record as the original service kept it, with every field (VEC-DOC-09). Fields that are not set are null. It
// goes to the owner and the owner's apps, never to a robot, which learns the user_id alone.
type Record struct {
	UserID               ID        `json:"user_id"`
	DriveGuestID         string    `json:"drive_guest_id"`
	PlayerID             string    `json:"player_id"` // the same
	CreatedByAppName     *string   `json:"created_by_app_name"`
	CreatedByAppVersion  *string   `json:"created_by_app_version"`
	CreatedByAppPlatform *string   `json:"created_by_app_platform"`
	Born                 *string   `json:"dob"`
	Email                string    `json:"email"`
	FamilyName           *string   `json:"family_name"`
	Gender               *string   `json:"gender"`
	GivenName            *string   `json:"given_name"`
	Username             string    `json:"username"` // the e-mail
	EmailIsVerified      bool      `json:"email_is_verified"`
	EmailFailureCode     *string   `json:"email_failure_code"`
	EmailLang            *string   `json:"email_lang"`
	PasswordIsComplex    bool      `json:"password_is_complex"`
	Status               string    `json:"status"`
	TimeCreated          time.Time `json:"time_created"`
	DeactivationReason   *string   `json:"deactivation_reason"`
	PurgeReason          *string   `json:"purge_reason"`
	EmailIsBlocked       bool      `json:"email_is_blocked"`
	NoAutodelete         bool      `json:"no_autodelete"`
	IsEmailAccount       bool      `json:"is_email_account"`
}

func null(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// record puts a record together. An account without a player id has its own id there, which is a GUID too.
func record(id ID, email string, created time.Time, verified bool, p Profile) Record {
	player := p.PlayerID
	if player == "" {
		player = string(id)
	}
	return Record{
		UserID: id, DriveGuestID: player, PlayerID: player,
		CreatedByAppName: null(p.AppName), CreatedByAppVersion: null(p.AppVersion), CreatedByAppPlatform: null(p.AppPlatform),
		Born: null(p.Born), Email: email, FamilyName: null(p.Family), Gender: null(p.Gender), GivenName: null(p.Given), Username: email,
		EmailIsVerified: verified, EmailFailureCode: null(p.EmailFailure), EmailLang: null(p.Lang), PasswordIsComplex: p.PasswordComplex,
		Status: p.Status, TimeCreated: created.UTC().Truncate(time.Second), DeactivationReason: null(p.DeactivationReason), PurgeReason: null(p.PurgeReason),
		EmailIsBlocked: p.EmailBlocked, NoAutodelete: p.NoAutodelete, IsEmailAccount: p.EmailAccount,
	}
}

// newGUID returns a random UUID.
func newGUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
