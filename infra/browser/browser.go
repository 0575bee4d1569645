// Package browser drives Chromium in tests of web pages. Things on a page are found as people and screen readers find them: by role and name, by
// label, by text; never by a class or a path in the document. Every step waits for what it needs, up to Patience, and fails the test otherwise.
//
// The half that speaks to the browser is driver.mjs; README.md says what is installed.
package browser

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// Patience is how long a step may wait for the page. Far more than any takes: a busy machine is slow for minutes at times.
const Patience = 2 * time.Minute

// Browser is one process of Chromium. Its pages are apart from each other: each has cookies and storage of its own. Safe for concurrent use.
type Browser struct {
	t      testing.TB
	cmd    *exec.Cmd
	in     io.WriteCloser
	stderr bytes.Buffer
	end    chan struct{} // closed when the driver said its last word

	mu    sync.Mutex
	last  int
	calls map[int]chan answer
	spent map[string]time.Duration // waiting for answers, by operation
}

type answer struct {
	ID    int             `json:"id"`
	Error string          `json:"error"`
	Value json.RawMessage `json:"value"`
}

// Start starts Chromium; the end of the test stops it.
func Start(t testing.TB) *Browser {
	t.Helper()
	dir, err := folder()
	if err != nil {
		t.Fatal(err)
	}
	chromium := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if chromium, err = exec.LookPath(name); err == nil {
			break
		}
	}
	if err != nil {
		t.Fatalf("no chromium on this machine: infra/setup.sh test installs it: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "node_modules/playwright-core/package.json")); err != nil {
		t.Fatalf("the browser's driver is not installed: infra/setup.sh test does it: %v", err)
	}
	b := &Browser{t: t, cmd: exec.Command("node", filepath.Join(dir, "driver.mjs"), chromium), end: make(chan struct{}), calls: map[int]chan answer{}, spent: map[string]time.Duration{}}
	b.cmd.Stderr = &b.stderr
	// An empty home: what the person who runs the tests has configured for browsers is not asked, and nothing is left in it.
	home := t.TempDir()
	b.cmd.Env = append(os.Environ(), "HOME="+home, "XDG_CONFIG_HOME="+home, "XDG_CACHE_HOME="+home)
	if b.in, err = b.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := b.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	hello := b.expect(0)
	if err := b.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go b.read(out)
	t.Cleanup(b.stop)
	select {
	case a := <-hello:
		t.Logf("chromium %s", a.Value)
	case <-b.end:
		t.Fatalf("the browser does not start:\n%s", b.stderr.String())
	case <-time.After(time.Minute):
		t.Fatal("the browser does not start within a minute")
	}
	return b
}

// folder is where driver.mjs is: below the folder of go.mod.
func folder() (string, error) {
	at, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for ; at != filepath.Dir(at); at = filepath.Dir(at) {
		if _, err := os.Stat(filepath.Join(at, "go.mod")); err == nil {
			return filepath.Join(at, "infra/browser"), nil
		}
	}
	return "", errors.New("browser: no go.mod in any parent folder")
}

func (b *Browser) expect(id int) chan answer {
	c := make(chan answer, 1)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.calls[id] = c
	return c
}

func (b *Browser) read(out io.Reader) {
	defer close(b.end)
	lines := bufio.NewReader(out)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		var a answer
		if json.Unmarshal(line, &a) != nil {
			continue // a message from another program
		}
		b.mu.Lock()
		c := b.calls[a.ID]
		delete(b.calls, a.ID)
		b.mu.Unlock()
		if c != nil {
			c <- a
		}
	}
}

// stop ends the driver, which takes the browser with it.
func (b *Browser) stop() {
	b.in.Close()
	select {
	case <-b.end:
	case <-time.After(10 * time.Second):
		_ = b.cmd.Process.Kill()
		<-b.end
	}
	_ = b.cmd.Wait() // what it said is in the answers
	b.t.Logf("waited for the browser, by operation: %v", b.spent)
}

// Size is a window. Touch makes it a phone's.
type Size struct {
	Width, Height int
	Touch         bool
}

// The sizes that pages are made for, and all at which they must fit.
var (
	Phone   = Size{390, 844, true}
	Desktop = Size{1440, 900, false}
	Sizes   = []Size{Phone, {768, 1024, true}, {1280, 720, false}, {1366, 768, false}, Desktop, {1920, 1080, false}}
)

// Page is a tab with cookies of its own.
type Page struct {
	t  testing.TB
	b  *Browser
	id string
}

// Page opens a page; the end of the test closes it.
func (b *Browser) Page(t testing.TB, s Size) *Page {
	t.Helper()
	b.mu.Lock()
	b.last++
	p := &Page{t, b, fmt.Sprintf("p%d", b.last)}
	b.mu.Unlock()
	p.do("page", args{"width": s.Width, "height": s.Height, "touch": s.Touch, "timeout": Patience.Milliseconds()})
	t.Cleanup(func() {
		if _, err := p.ask("close", nil); err != nil {
			t.Logf("page not closed: %v", err)
		}
	})
	return p
}

// For returns the same page for a subtest.
func (p *Page) For(t testing.TB) *Page {
	q := *p
	q.t = t
	return &q
}

type args map[string]any

func (p *Page) ask(op string, a args) (json.RawMessage, error) {
	p.b.mu.Lock()
	p.b.last++
	id := p.b.last
	p.b.mu.Unlock()
	req := args{"id": id, "op": op, "page": p.id}
	for k, v := range a {
		req[k] = v
	}
	line, err := json.Marshal(req)
	if err != nil {
		return nil, err
	}
	c := p.b.expect(id)
	p.b.mu.Lock()
	_, err = p.b.in.Write(append(line, '\n'))
	p.b.mu.Unlock()
	if err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", op, err, p.b.stderr.String())
	}
	start := time.Now()
	defer func() {
		p.b.mu.Lock()
		p.b.spent[op] += time.Since(start)
		p.b.mu.Unlock()
	}()
	select {
	case got := <-c:
		if got.Error != "" {
			return nil, errors.New(got.Error)
		}
		return got.Value, nil
	case <-p.b.end:
		return nil, fmt.Errorf("%s: the browser ended\n%s", op, p.b.stderr.String())
	case <-time.After(3 * Patience):
		return nil, fmt.Errorf("%s: no answer within %v", op, 3*Patience)
	}
}

// do is ask for what must work. A failure shows where one was and what was there.
func (p *Page) do(op string, a args) json.RawMessage {
	p.t.Helper()
	v, err := p.ask(op, a)
	if err == nil {
		return v
	}
	said, _ := json.Marshal(a)
	where, _ := p.ask("url", nil)
	text, _ := p.ask("text", nil)
	var words string
	_ = json.Unmarshal(text, &words)
	p.t.Fatalf("%s %s at %s: %v\nthe page says:\n%s", op, said, where, err, cut(words, 3000))
	return nil
}

func cut(s string, n int) string {
	if len(s) > n {
		return s[:n] + "…"
	}
	return s
}

func (p *Page) str(op string, a args) (s string) {
	p.t.Helper()
	p.into(&s, op, a)
	return s
}

func (p *Page) into(v any, op string, a args) {
	p.t.Helper()
	if err := json.Unmarshal(p.do(op, a), v); err != nil {
		p.t.Fatalf("%s: %v", op, err)
	}
}

// Goto opens an address, as typed.
func (p *Page) Goto(url string) { p.t.Helper(); p.do("goto", args{"url": url}) }

// Reload asks for the page again.
func (p *Page) Reload() { p.t.Helper(); p.do("reload", nil) }

// Click clicks on what has that role and a name with those words. What opens a part of the page has the role summary.
func (p *Page) Click(role, name string) {
	p.t.Helper()
	p.do("click", args{"role": role, "name": name})
}

// ClickIn is Click within a part of the page that has a role and a name itself, such as a region or a row.
func (p *Page) ClickIn(partRole, part, role, name string) {
	p.t.Helper()
	p.do("click", args{"within": args{"role": partRole, "name": part}, "role": role, "name": name})
}

// Follow clicks on a link and waits until the address has that path, a regular expression.
func (p *Page) Follow(name, path string) {
	p.t.Helper()
	p.Click("link", name)
	p.At(path)
}

// Fill writes into the field with that label.
func (p *Page) Fill(label, value string) {
	p.t.Helper()
	p.do("fill", args{"label": label, "value": value})
}

// Attach puts a file into the field with that label, as if a person had chosen it.
func (p *Page) Attach(label, fileName string, content []byte) {
	p.t.Helper()
	p.do("attach", args{"label": label, "name": fileName, "content": content})
}

// Drag presses the mouse at one place of the window, moves it to another, and lets go. Places are x and y in px.
func (p *Page) Drag(from, to [2]float64) {
	p.t.Helper()
	p.do("drag", args{"from": from, "to": to})
}

// Authenticator gives the page's device a place for passkeys, whose owner is there and shows a finger whenever it is asked for.
func (p *Page) Authenticator() { p.t.Helper(); p.do("authenticator", nil) }

// Check ticks the box, or picks the radio button, with that label.
func (p *Page) Check(label string) { p.t.Helper(); p.do("check", args{"label": label}) }

// Choose picks an entry of a list by what it says.
func (p *Page) Choose(label, entry string) {
	p.t.Helper()
	p.do("choose", args{"label": label, "value": entry})
}

// Press presses a key where the focus is: "Enter", "Tab", "Shift+Tab".
func (p *Page) Press(key string) { p.t.Helper(); p.do("press", args{"key": key}) }

// Hold is Press for so long.
func (p *Page) Hold(key string, d time.Duration) {
	p.t.Helper()
	p.do("press", args{"key": key, "hold": d.Milliseconds()})
}

// Focus puts the focus on what has that role and name.
func (p *Page) Focus(role, name string) {
	p.t.Helper()
	p.do("focus", args{"role": role, "name": name})
}

// FocusField puts the focus into the field with that label.
func (p *Page) FocusField(label string) { p.t.Helper(); p.do("focus", args{"label": label}) }

// See waits until the page shows the words.
func (p *Page) See(text string) { p.t.Helper(); p.do("see", args{"text": text}) }

// SeeRole waits until something with that role and name is shown.
func (p *Page) SeeRole(role, name string) {
	p.t.Helper()
	p.do("see", args{"role": role, "name": name})
}

// SeeIn waits until a part of the page shows the words.
func (p *Page) SeeIn(partRole, part, text string) {
	p.t.Helper()
	p.do("see", args{"within": args{"role": partRole, "name": part}, "text": text})
}

// Gone waits until the words are not shown.
func (p *Page) Gone(text string) { p.t.Helper(); p.do("gone", args{"text": text}) }

// At waits until path and query of the address match a regular expression.
func (p *Page) At(path string) { p.t.Helper(); p.do("at", args{"path": path}) }

// URL is where the page is.
func (p *Page) URL() string { p.t.Helper(); return p.str("url", nil) }

// Text returns the text of the page.
func (p *Page) Text() string { p.t.Helper(); return p.str("text", nil) }

// TextOf returns the text of a part of the page.
func (p *Page) TextOf(role, name string) string {
	p.t.Helper()
	return p.str("text", args{"role": role, "name": name})
}

// Value returns the value of the field with that label.
func (p *Page) Value(label string) string {
	p.t.Helper()
	return p.str("value", args{"label": label})
}

// Checked reports whether the box with that label is ticked.
func (p *Page) Checked(label string) (on bool) {
	p.t.Helper()
	p.into(&on, "checked", args{"label": label})
	return on
}

// Eval runs a script and returns what it says as JSON.
func (p *Page) Eval(script string) json.RawMessage {
	p.t.Helper()
	return p.do("eval", args{"script": script})
}

// Download clicks and returns the file that comes of it.
func (p *Page) Download(role, name string) (fileName string, content []byte) {
	p.t.Helper()
	at := filepath.Join(p.t.TempDir(), "file")
	fileName = p.str("download", args{"role": role, "name": name, "file": at})
	content, err := os.ReadFile(at)
	if err != nil {
		p.t.Fatal(err)
	}
	return fileName, content
}

// Look changes how the page is looked at: the colour scheme (light, dark) and the size of the window.
func (p *Page) Look(scheme string, s Size) {
	p.t.Helper()
	p.do("look", args{"scheme": scheme, "width": s.Width, "height": s.Height})
}

// Shot makes a picture of the whole page.
func (p *Page) Shot(file string) { p.t.Helper(); p.do("shot", args{"file": file}) }

// Window makes a picture of the part of the page that the window shows.
func (p *Page) Window(file string) { p.t.Helper(); p.do("shot", args{"file": file, "window": true}) }

// Labels returns the texts of headings, menus, labels and buttons, sorted, each once and without words that have digits.
func (p *Page) Labels() (out []string) { p.t.Helper(); p.into(&out, "labels", nil); return out }

// Violation is a finding of axe-core.
type Violation struct {
	ID, Impact, Help string
	Nodes            []string
}

// Axe returns what keeps people out of the page, of every impact: minor, moderate, serious, critical. Without
// rules all of WCAG 2.2 AA and good practice is asked.
func (p *Page) Axe(rules ...string) (out []Violation) {
	p.t.Helper()
	p.into(&out, "axe", args{"rules": rules})
	return out
}

// Misfit is something that does not fit into the window. Kind is wide (the page is wider than the window), covered (another element lies over the middle of
// a target), small (a target has less than 24 px) or cut (a text is cut off).
type Misfit struct{ Kind, What string }

// Fit returns what does not fit into the window at its present size.
func (p *Page) Fit() (out []Misfit) { p.t.Helper(); p.into(&out, "fit", nil); return out }

// Fits checks that the present page fits, in light, into a window of each size.
func (p *Page) Fits(sizes ...Size) {
	p.t.Helper()
	at := strings.TrimPrefix(p.URL(), "https://")
	for _, s := range sizes {
		p.Look("light", s)
		for _, m := range p.Fit() {
			p.t.Errorf("%s, %d px: %s: %s", at, s.Width, m.Kind, m.What)
		}
	}
}

// Untranslated returns the texts that the present page, asked for again, has in English for a browser of another language, without what people and robots said.
func (p *Page) Untranslated(lang string) (out []string) {
	p.t.Helper()
	p.into(&out, "untranslated", args{"lang": lang})
	return out
}

// Stop is where the Tab key leads.
type Stop struct {
	Name   string
	Seen   bool // the focus can be seen
	InView bool
}

// Tabs walks through the page with the Tab key. missed lists the interactive elements that cannot be reached.
func (p *Page) Tabs() (stops []Stop, missed []string) {
	p.t.Helper()
	var out struct {
		Stops  []Stop
		Missed []string
	}
	p.into(&out, "tabs", nil)
	return out.Stops, out.Missed
}

// Faults returns, once, what went wrong beside the page: errors of scripts, what the page's policy refused, requests to other hosts.
func (p *Page) Faults() (out []string) { p.t.Helper(); p.into(&out, "faults", nil); return out }

// colourRules are those of axe-core that depend on how a page is coloured, and sizeRules on how it is laid out; the others need be asked once.
var (
	colourRules = []string{"color-contrast", "link-in-text-block"}
	sizeRules   = append([]string{"target-size", "scrollable-region-focusable"}, colourRules...)
)

// Sound checks the present page, in light and dark, at each size: nothing serious or critical for axe-core, the Tab key reaches everything
// and the focus is seen, no fault. The window is then of the last size, in light.
func (p *Page) Sound(sizes ...Size) {
	p.t.Helper()
	at := strings.TrimPrefix(p.URL(), "https://")
	for i, s := range sizes {
		for _, scheme := range []string{"dark", "light"} { // a page is left in light
			p.Look(scheme, s)
			var rules []string // all of them
			switch {
			case scheme == "dark":
				rules = colourRules
			case i > 0:
				rules = sizeRules
			}
			for _, v := range p.Axe(rules...) {
				if v.Impact == "serious" || v.Impact == "critical" {
					p.t.Errorf("%s, %s, %d px: %s: %s (%s)\n\t%s", at, scheme, s.Width, v.Impact, v.Help, v.ID, strings.Join(v.Nodes, "\n\t"))
				} else {
					p.t.Logf("%s, %s, %d px: %s: %s (%s) %s", at, scheme, s.Width, v.Impact, v.Help, v.ID, strings.Join(v.Nodes[:1], ""))
				}
			}
		}
		stops, missed := p.Tabs()
		if len(missed) > 0 { // a live page may have put in something new meanwhile
			stops, missed = p.Tabs()
		}
		if len(missed) > 0 {
			p.t.Errorf("%s, %d px: the Tab key does not reach %q", at, s.Width, missed)
		}
		for _, x := range stops {
			if !x.Seen || !x.InView {
				p.t.Errorf("%s, %d px: the focus on %q is not visible (shown %v, in the window %v)", at, s.Width, x.Name, x.Seen, x.InView)
			}
		}
		if len(stops) == 0 {
			p.t.Errorf("%s: nothing to reach with the Tab key", at)
		}
	}
	if faults := p.Faults(); len(faults) > 0 {
		p.t.Errorf("%s: %q", at, faults)
	}
}
