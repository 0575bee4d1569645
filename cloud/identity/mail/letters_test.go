package mail

import (
	"bytes"
	"io"
	"log/slog"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net/mail"
	"strings"
	"testing"
	"time"
)

func service(t testing.TB) *Service {
	t.Helper()
	all, err := loadLetters()
	if err != nil {
		t.Fatal(err)
	}
	from, err := mail.ParseAddress("Kennel at home <home@example.org>")
	if err != nil {
		t.Fatal(err)
	}
	return &Service{Config{Site: "Kennel", Now: func() time.Time { return time.Date(2026, 5, 6, 7, 8, 9, 0, time.UTC) }, Log: slog.New(slog.DiscardHandler)}, from, all}
}

func raw(t testing.TB, m Message) []byte {
	t.Helper()
	b, err := m.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// read takes a message apart as a mail program does.
func read(t testing.TB, raw []byte) (h mail.Header, text, html string) {
	t.Helper()
	m, err := mail.ReadMessage(bytes.NewReader(raw))
	if err != nil {
		t.Fatalf("%v in\n%s", err, raw)
	}
	kind, params, err := mime.ParseMediaType(m.Header.Get("Content-Type"))
	if err != nil || kind != "multipart/alternative" {
		t.Fatalf("content type %q, %v", kind, err)
	}
	parts := multipart.NewReader(m.Body, params["boundary"])
	for _, to := range []*string{&text, &html} {
		p, err := parts.NextRawPart()
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(quotedprintable.NewReader(p))
		if err != nil {
			t.Fatal(err)
		}
		*to = strings.ReplaceAll(string(b), "\r\n", "\n")
	}
	return m.Header, text, html
}

// Every letter in every language: no line is too long for a server, both parts say the same, and what is in it cannot break out.
func TestEveryLetter(t *testing.T) {
	s := service(t)
	if len(s.letters) < 2 {
		t.Errorf("languages %v", s.letters)
	}
	for lang := range s.letters {
		for _, name := range Templates {
			m := Mail{ID: "0b6f1c9e", To: `"<b>bob</b>"@example.com`, Lang: lang + "-XY"}
			l := Letter{Template: name, Link: "https://kennel.example/account/verify?a=1&code=K", Code: "K7CODE", Expires: s.cfg.Now(), Other: "<i>new@example.com</i>",
				Robot: "<i>new</i> (vic:00e20100)", Why: "code", At: s.cfg.Now()}
			msg, err := s.write(m, l)
			if err != nil {
				t.Fatalf("%s %s: %v", lang, name, err)
			}
			for line := range strings.SplitSeq(string(raw(t, msg)), "\r\n") {
				if len(line) > 998 || strings.ContainsAny(line, "\r\n") {
					t.Errorf("%s %s: line of %d bytes, or a bare line break: %.80q", lang, name, len(line), line)
				}
			}
			h, text, html := read(t, raw(t, msg))
			subject, err := new(mime.WordDecoder).DecodeHeader(h.Get("Subject"))
			if err != nil || !strings.Contains(subject, "Kennel") || strings.Contains(text, "{{") || strings.Contains(text, "<no value>") {
				t.Errorf("%s %s: subject %q, %v, text %s", lang, name, subject, err, text)
			}
			if h.Get("Message-ID") != "<0b6f1c9e@example.org>" || h.Get("Auto-Submitted") == "" || h.Get("Content-Language") != lang || h.Get("From") != `"Kennel at home" <home@example.org>` {
				t.Errorf("%s %s: header %v", lang, name, h)
			}
			if to, err := h.AddressList("To"); err != nil || to[0].Address != m.To {
				t.Errorf("%s %s: to %v, %v", lang, name, to, err)
			}
			if strings.Contains(html, "<b>bob") || strings.Contains(html, "<i>new") {
				t.Errorf("%s %s: HTML of an address is taken for ours:\n%s", lang, name, html)
			}
			if strings.Contains(text, l.Link) != strings.Contains(html, `href="https://kennel.example/account/verify?a=1&amp;code=K"`) {
				t.Errorf("%s %s: the parts differ about the link:\n%s\n%s", lang, name, text, html)
			}
			if strings.Contains(text, l.Code+"\n") != strings.Contains(html, ">K7CODE<") {
				t.Errorf("%s %s: the parts differ about the code", lang, name)
			}
		}
	}
}

func TestUnknownLanguageIsEnglish(t *testing.T) {
	s := service(t)
	for lang, want := range map[string]string{"": "en", "ja-JP": "en", "DE-at": "de", "../x": "en"} {
		if got, _, err := s.letters.in(lang, "reset"); err != nil || got != want {
			t.Errorf("%q: %q, %v", lang, got, err)
		}
	}
	if _, err := s.write(Mail{ID: "x", To: "a@b"}, Letter{Template: "nothing"}); err == nil {
		t.Error("a letter that is not there was written")
	}
}

func TestPlausible(t *testing.T) {
	for address, want := range map[string]bool{"a@b": true, "": false, "nobody": false, "a@b\r\nBcc: c@d": false, "a\x00@b": false, strings.Repeat("a", 300) + "@b": false} {
		if plausible(address) != want {
			t.Errorf("%.40q: want %v", address, want)
		}
	}
}

// FuzzLetter: whatever an address is, the message has our headers and no other.
func FuzzLetter(f *testing.F) {
	s := service(f)
	f.Add("ada@example.com", "bob@example.com")
	f.Add("a@b\r\nBcc: c@d", "x\r\n\r\n--")
	f.Fuzz(func(t *testing.T, to, other string) {
		if !plausible(to) {
			return
		}
		msg, err := s.write(Mail{ID: "x", To: to}, Letter{Template: "email-changed", Other: other})
		if err != nil {
			return
		}
		h, _, _ := read(t, raw(t, msg))
		if len(h) != 9 {
			t.Fatalf("%d headers: %v", len(h), h)
		}
	})
}
