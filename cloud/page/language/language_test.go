package language

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

const small = `# a comment

Online
Verbunden

Since {}.
Seit {}.

Read <1>this</1> first.
Zuerst <1>dies</1> lesen.

Settings of {t}
Einstellungen von {t}

Your {w}
Dein {w}

robot
Roboter

Yes
Ja
`

// TestAnswer: the text of a page is translated wherever people meet it, with the elements that are in it; nothing else changes.
func TestAnswer(t *testing.T) {
	c, err := Parse("de", small)
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ from, to string }{
		{`<p>Online</p>`, `<p>Verbunden</p>`},
		{"<p>\n  Online <!-- x -->\n</p>", "<p>\n  Verbunden <!-- x -->\n</p>"},
		{`<p class="small">Since <time datetime="x">then</time>. Online</p>`, `<p class="small">Seit <time datetime="x">then</time>. Verbunden</p>`},
		{`<p>Since <b translate="no">1</b>. Since <b translate="no">2</b>.</p>`, `<p>Seit <b translate="no">1</b>. Seit <b translate="no">2</b>.</p>`},
		{`<p>Read <a href="/x">this</a> first.</p>`, `<p>Zuerst <a href="/x">dies</a> lesen.</p>`},
		{`<label><input name="a"/> Yes</label>`, `<label><input name="a"/> Ja</label>`},
		{`<a href="/">Online</a><a href="/2">Yes</a>`, `<a href="/">Verbunden</a><a href="/2">Ja</a>`},
		{`<h1 translate="no">Online</h1>`, `<h1 translate="no">Online</h1>`},
		{`<p>Settings of <b translate="no">Online</b></p>`, `<p>Einstellungen von <b translate="no">Online</b></p>`},
		{`<p>Settings of <i><b translate="no">Rex</b></i></p>`, `<p>Einstellungen von <i><b translate="no">Rex</b></i></p>`},
		{`<p>Your Vector</p>`, `<p>Dein Vector</p>`},
		{`<p>Your robot does what no text knows</p>`, `<p lang="en">Your robot does what no text knows</p>`},
		{`<p>Settings of Your robot</p>`, `<p>Einstellungen von Dein Roboter</p>`},
		{`<p>Since &lt;1&gt; &amp; 2.</p>`, `<p>Seit &lt;1&gt; &amp; 2.</p>`},
		{`<input placeholder="Yes" value="Yes" aria-label="Online"/>`, `<input placeholder="Ja" value="Yes" aria-label="Verbunden"/>`},
		{`<select><option value="Yes">Yes</option></select>`, `<select><option value="Yes">Ja</option></select>`},
		{`<p>Nothing of ours</p>`, `<p lang="en">Nothing of ours</p>`},
		{`<p>12 %</p><script>Yes</script><code>Yes</code>`, `<p>12 %</p><script>Yes</script><code>Yes</code>`},
	} {
		h := http.Header{}
		page := `<!DOCTYPE html><html lang="` + "en" + `"><head></head><body>` + tc.from + `</body></html>`
		want := strings.ReplaceAll(page, `<html lang="en"`, `<html lang="de"`)
		want = strings.Replace(want, tc.from, tc.to, 1)
		if got := string(c.Answer(h, []byte(page))); got != want || h.Get("Content-Language") != "de" || h.Get("Vary") != "Accept-Language" {
			t.Errorf("got  %s\nwant %s\nheader %v", got, want, h)
		}
		if got := string((*Catalog)(nil).Answer(h, []byte(page))); got != page || h.Get("Content-Language") != "en" {
			t.Errorf("in English: %s", got)
		}
	}
}

// TestOf: the languages of the browser decide, in their order; one that asks for neither gets English.
func TestOf(t *testing.T) {
	for header, want := range map[string]string{"": "", "de": "de", "de-AT,de;q=0.9,en;q=0.8": "de", "en-GB,en;q=0.9,de;q=0.8": "", "fr,de;q=0.5": "de", "fr": "",
		"en;q=0.1,de-CH": "de", "*": "", "x;q=": "", strings.Repeat("de,", 5000): "de"} {
		r := httptest.NewRequestWithContext(t.Context(), "GET", "/", nil)
		r.Header.Set("Accept-Language", header)
		got := ""
		if c := Of(r); c != nil {
			got = c.Lang
		}
		if got != want {
			t.Errorf("%.60q: %q, want %q", header, got, want)
		}
	}
}

// TestParse: a catalogue that cannot be used says where.
func TestParse(t *testing.T) {
	for src, line := range map[string]string{"A b\n\n": "line 2", "A b\nC d\n\nA b\nE f\n": "line 5", "A {}\nB\n": "line 2"} {
		if _, err := Parse("de", src); err == nil || !strings.Contains(err.Error(), line) {
			t.Errorf("%q: %v, want %s", src, err, line)
		}
	}
}

// FuzzAnswer: no page breaks the translator, and what it makes it can read again.
func FuzzAnswer(f *testing.F) {
	f.Add(`<p>Since <time>x</time> and <1>. <b>Read <i>this</i></b> first.</p>`)
	f.Add("<p>\x01Online\x01</p>")
	f.Fuzz(func(t *testing.T, page string) {
		once := German.Answer(http.Header{}, []byte(page))
		German.Answer(http.Header{}, once)
	})
}
