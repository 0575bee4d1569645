// Package mail sends letters to people: what is to be said waits in the database until it is sent, so that a letter survives the death of
// any process.
//
// Post only notes a kind, an address and a few words. What the letter says is found out when it is sent (Composer): the caller of Post does
// the same work whether the address has an account or not, and a link that opens an account is made at the last moment and stored nowhere but
// as its hash. Letters are text with an HTML twin, in the reader's language if there is one (letters/).
//
// A letter may arrive twice when a process dies between the server's answer and our note of it; both have the same Message-ID.
//
// The packages below: mailpg (what waits, in Postgres), mailsmtp (a mail server), mailspool (a folder, where there is no server).
package mail

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/mail"
	"strings"
	"time"

	gomail "github.com/wneessen/go-mail"

	"kennel/infra/errs"
)

// TaskSend is the name of the task that sends one letter.
const TaskSend = "mail.send"

// Bounds and defaults: ours, no source gives them.
const (
	// DefaultKeep is how long a letter waits for a server that is away. Links in it live from the moment it is sent.
	DefaultKeep = 24 * time.Hour
	sendTime    = 25 * time.Second // for one letter; below the time of one task
	maxAddress  = 254
)

// ErrUnknown: no such letter waits.
var ErrUnknown = errors.New("mail: unknown")

// Mail is a letter to be written: its recipient, kind and data.
type Mail struct {
	ID      string // a UUID, set by the outbox
	Kind    string // for the Composer
	To      string
	Account string            // whom it is about: the id of an account, or of one that may become one; may be empty
	Lang    string            // language that the asker speaks, such as en-US; may be empty
	Data    map[string]string // for the Composer; no secrets: it is stored in a table
	Created time.Time
	Expires time.Time // after this it is not worth sending
}

// Outbox is where mails wait.
type Outbox interface {
	// Add stores m and orders the task that sends it, both or neither.
	Add(ctx context.Context, m Mail) error
	// Get returns a mail; ErrUnknown.
	Get(ctx context.Context, id string) (Mail, error)
	// Remove forgets a mail. One that is not there is no error.
	Remove(ctx context.Context, id string) error
	// Expire forgets mails that expired before now and returns how many.
	Expire(ctx context.Context, now time.Time) (int, error)
	// About returns the mails about an account or to one of these addresses.
	About(ctx context.Context, account string, addresses []string) ([]Mail, error)
	// Erase forgets the mails about an account or to one of these addresses.
	Erase(ctx context.Context, account string, addresses []string) error
}

// Queue takes letters. Safe for concurrent use.
type Queue struct {
	Outbox Outbox
	Keep   time.Duration    // 0: DefaultKeep
	Now    func() time.Time // nil: time.Now
}

// Post notes a mail for sending; ID, Created and Expires are set here. It is on disk when Post returns nil. Invalid for an address that is none.
func (q Queue) Post(ctx context.Context, m Mail) error {
	if m.Kind == "" || !plausible(m.To) {
		return errs.New(errs.Invalid, "mail of kind %.40q: want a kind, and an address of at most %d bytes", m.Kind, maxAddress)
	}
	now := time.Now
	if q.Now != nil {
		now = q.Now
	}
	keep := q.Keep
	if keep == 0 {
		keep = DefaultKeep
	}
	m.Created = now()
	m.Expires = m.Created.Add(keep)
	if err := q.Outbox.Add(ctx, m); err != nil {
		return fmt.Errorf("post mail: %w", err)
	}
	return nil
}

// plausible refuses what could break out of a header or a command; callers have checked the rest.
func plausible(address string) bool {
	return address != "" && len(address) <= maxAddress && strings.Contains(address, "@") && !strings.ContainsFunc(address, func(r rune) bool { return r < 0x20 || r == 0x7f })
}

// Letter says which letter to write.
type Letter struct {
	Template string // a name of letters/
	Lang     string // "": the Mail's
	Account  string // "": the Mail's
	Link     string // where the reader acts; may be empty
	Code     string // the same to be typed; may be empty
	Expires  time.Time
	Other    string // another address that the letter speaks of
	Robot    string // that the letter speaks of
	Why      string // a word for the template to choose a sentence by
	At       time.Time
}

// Composer decides what a mail says. false: there is nothing to say any more. It may be asked again for the same mail.
type Composer func(ctx context.Context, m Mail) (Letter, bool, error)

// Message is a letter ready to leave.
type Message struct {
	ID      string // of the Mail
	Account string
	To      string
	*gomail.Msg
}

// Bytes returns the message as RFC 5322 has it, with CR LF.
func (m Message) Bytes() ([]byte, error) {
	var b bytes.Buffer
	_, err := m.WriteTo(&b)
	return b.Bytes(), err
}

// Transport hands a message over. It returns nil once the next mail server has stored it. Its errors name no person: they
// are kept. Invalid says that it will never work for this address.
type Transport interface {
	Send(ctx context.Context, m Message) error
}

// Eraser is a Transport that keeps what it got.
type Eraser interface {
	// Kept returns the messages about an account or to one of these addresses.
	Kept(ctx context.Context, account string, addresses []string) ([][]byte, error)
	// EraseKept forgets them.
	EraseKept(ctx context.Context, account string, addresses []string) error
	// ForgetBefore forgets what is older.
	ForgetBefore(ctx context.Context, t time.Time) error
}

// Config holds what Service is made of. All but Bounced, KeepSent, Site and Now are required.
type Config struct {
	Outbox    Outbox
	Compose   Composer
	Transport Transport
	// Addresses returns the addresses of an account, for Export and Erase; none for an unknown one.
	Addresses func(ctx context.Context, account string) ([]string, error)
	// Bounced is told that an address does not take mail, with a short code such as "smtp 550".
	Bounced  func(ctx context.Context, m Mail, code string) error
	From     string           // address, may have a name: Kennel <home@example.org>
	Site     string           // name in the letters; "": Kennel
	KeepSent time.Duration    // how long an Eraser keeps messages; 0: 30 days
	Now      func() time.Time // nil: time.Now
	Log      *slog.Logger
}

// Service sends what the outbox holds. Safe for concurrent use.
type Service struct {
	cfg     Config
	from    *mail.Address
	letters letters
}

// New checks cfg and returns the service.
func New(cfg Config) (*Service, error) {
	if cfg.Outbox == nil || cfg.Compose == nil || cfg.Transport == nil || cfg.Addresses == nil || cfg.Log == nil {
		return nil, errors.New("mail: outbox, composer, transport, addresses and log are required")
	}
	from, err := mail.ParseAddress(cfg.From)
	if err != nil {
		return nil, errs.New(errs.Invalid, "mail.from %.80q: want an address, such as Kennel <home@example.org>", cfg.From)
	}
	if cfg.Site == "" {
		cfg.Site = "Kennel"
	}
	if cfg.KeepSent == 0 {
		cfg.KeepSent = 30 * 24 * time.Hour
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	all, err := loadLetters()
	if err != nil {
		return nil, fmt.Errorf("mail: %w", err)
	}
	return &Service{cfg, from, all}, nil
}

// Send sends one waiting mail: the task TaskSend. A mail that is gone is no error.
func (s *Service) Send(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, sendTime)
	defer cancel()
	m, err := s.cfg.Outbox.Get(ctx, id)
	if errors.Is(err, ErrUnknown) {
		return nil // sent, erased or expired
	}
	if err != nil {
		return fmt.Errorf("read mail: %w", err)
	}
	if s.cfg.Now().After(m.Expires) {
		return s.cfg.Outbox.Remove(ctx, id)
	}
	l, say, err := s.cfg.Compose(ctx, m)
	if err != nil {
		return fmt.Errorf("compose %s: %w", m.Kind, err)
	}
	if !say {
		return s.cfg.Outbox.Remove(ctx, id)
	}
	msg, err := s.write(m, l)
	if err != nil {
		return fmt.Errorf("write %s: %w", l.Template, err)
	}
	err = s.cfg.Transport.Send(ctx, msg)
	if err != nil && errs.KindOf(err) == errs.Invalid {
		s.cfg.Log.WarnContext(ctx, "mail refused permanently", "mail", id, "kind", m.Kind, "code", errs.CodeOf(err))
		if s.cfg.Bounced != nil {
			if err := s.cfg.Bounced(ctx, m, errs.CodeOf(err)); err != nil {
				return fmt.Errorf("record bounce: %w", err)
			}
		}
		return s.cfg.Outbox.Remove(ctx, id)
	}
	if err != nil {
		return fmt.Errorf("send: %w", err)
	}
	if err := s.cfg.Outbox.Remove(ctx, id); err != nil {
		return fmt.Errorf("record that mail is sent: %w", err)
	}
	s.cfg.Log.InfoContext(ctx, "mail sent", "mail", id, "kind", m.Kind)
	return nil
}

// Forget drops mails that are no longer awaited, and old messages of a transport that keeps them. It is a periodic job.
func (s *Service) Forget(ctx context.Context) error {
	now := s.cfg.Now()
	n, err := s.cfg.Outbox.Expire(ctx, now)
	if err != nil {
		return fmt.Errorf("expire mails: %w", err)
	}
	if n > 0 {
		s.cfg.Log.WarnContext(ctx, "unsent mails expired", "mails", n)
	}
	if e, ok := s.cfg.Transport.(Eraser); ok {
		return e.ForgetBefore(ctx, now.Add(-s.cfg.KeepSent))
	}
	return nil
}

// Held is the result of Export.
type Held struct {
	Waiting []HeldMail `json:"waiting"`
	Sent    []string   `json:"sent,omitempty"` // messages that we still have, as they left
}

// HeldMail is a mail that waits.
type HeldMail struct {
	Kind    string    `json:"kind"`
	To      string    `json:"to"`
	Created time.Time `json:"created"`
}

// Export returns the letters about an account that are still here.
func (s *Service) Export(ctx context.Context, account string) (any, error) {
	addresses, err := s.cfg.Addresses(ctx, account)
	if err != nil {
		return nil, err
	}
	out := Held{Waiting: []HeldMail{}}
	waiting, err := s.cfg.Outbox.About(ctx, account, addresses)
	if err != nil {
		return nil, err
	}
	for _, m := range waiting {
		out.Waiting = append(out.Waiting, HeldMail{m.Kind, m.To, m.Created.UTC()})
	}
	if e, ok := s.cfg.Transport.(Eraser); ok {
		kept, err := e.Kept(ctx, account, addresses)
		if err != nil {
			return nil, err
		}
		for _, raw := range kept {
			out.Sent = append(out.Sent, string(raw))
		}
	}
	return out, nil
}

// Erase forgets every letter about an account, waiting or kept. It may be repeated.
func (s *Service) Erase(ctx context.Context, account string) error {
	addresses, err := s.cfg.Addresses(ctx, account)
	if err != nil {
		return err
	}
	if err := s.cfg.Outbox.Erase(ctx, account, addresses); err != nil {
		return fmt.Errorf("erase waiting mails: %w", err)
	}
	if e, ok := s.cfg.Transport.(Eraser); ok {
		if err := e.EraseKept(ctx, account, addresses); err != nil {
			return fmt.Errorf("erase kept mails: %w", err)
		}
	}
	return nil
}

// AddressMark is a short mark of an address, for names of files: it tells addresses apart and does not spell them.
func AddressMark(address string) string {
	sum := sha256.Sum256([]byte(strings.ToLower(address)))
	return hex.EncodeToString(sum[:8])
}
