package browser

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// recorder is a test that may fail without failing ours.
type recorder struct {
	testing.TB
	said []string
}

func (r *recorder) Errorf(f string, a ...any) { r.said = append(r.said, fmt.Sprintf(f, a...)) }
func (r *recorder) Logf(string, ...any)       {}

const good = `<!doctype html><html lang="en"><meta name="viewport" content="width=device-width"><title>A page</title>
<style>body{background:#fff;color:#111;line-height:28px} input,button{min-height:28px;font:inherit} label{display:inline-block} @media (prefers-color-scheme:dark){body{background:#111;color:#eee} a{color:#9cf}} a{display:inline-block;padding:8px} :focus-visible{outline:3px solid #b4491f}</style>
<main><h1>Hello</h1><form action="/next"><label>Name <input name="n"></label><button>Go</button></form>
<fieldset><legend>Colour</legend><label><input type=radio name=c value=1>Red</label><label><input type=radio name=c value=2 checked>Blue</label></fieldset>
<details><summary>More</summary><a href="/next">Inside</a></details><a href="/file" download="f.txt">File</a></main>`

// TestSound: a good page passes, and every check can fail.
func TestSound(t *testing.T) {
	pages := map[string]string{
		"/good":    good,
		"/next":    strings.Replace(good, "Hello", "Next", 1),
		"/name":    strings.Replace(good, "Name <input", "<input", 1),
		"/faint":   strings.Replace(good, "color:#eee", "color:#222", 1),
		"/unseen":  strings.Replace(good, "outline:3px solid #b4491f", "outline:none", 1),
		"/wide":    strings.Replace(good, "<h1>", `<div style="width:600px">w</div><h1>`, 1),
		"/covered": strings.Replace(good, "<h1>", `<div style="position:fixed;inset:0;opacity:0"></div><h1>`, 1),
		"/small":   strings.Replace(good, "padding:8px", "line-height:12px", 1),
		"/cut":     strings.Replace(good, "<h1>", `<p style="width:99px;overflow:hidden;white-space:nowrap">A name that is longer than its place</p><h1>`, 1),
		"/stuck":   strings.Replace(good, "<h1>", `<script>addEventListener("keydown",e=>{if(e.key=="Tab"&&document.activeElement.name=="n")e.preventDefault()})</script><h1>`, 1),
		"/script":  strings.Replace(good, "<h1>", `<script>nothing()</script><h1>`, 1),
		"/outside": strings.Replace(good, "<h1>", `<img alt="" src="http://192.0.2.1:9/x.png"><h1>`, 1),
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/file" {
			fmt.Fprint(w, "content")
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		if r.URL.Path == "/outside" {
			w.Header().Set("Content-Security-Policy", "img-src 'self'") // nothing leaves this machine
		}
		fmt.Fprint(w, pages[r.URL.Path])
	}))
	t.Cleanup(s.Close)
	p := Start(t).Page(t, Desktop)
	for path, want := range map[string]string{"/good": "", "/name": "label", "/faint": "contrast", "/unseen": "not visible", "/wide": "wide", "/covered": "covered", "/small": "small", "/cut": "cut", "/stuck": "does not reach", "/script": "nothing", "/outside": "Content Security Policy"} {
		p.Goto(s.URL + path)
		r := &recorder{TB: t}
		if p.For(r).Fits(Phone); path == "/good" {
			p.For(r).Fits(Sizes...)
			p.For(r).Sound(Desktop)
		}
		p.For(r).Sound(Phone)
		said := strings.Join(r.said, "\n")
		if (want == "") != (said == "") || !strings.Contains(said, want) {
			t.Errorf("%s: want %q, got\n%s", path, want, said)
		}
	}

	p.Look("light", Desktop)
	p.Goto(s.URL + "/good")
	if stops, _ := p.Tabs(); len(stops) != 5 {
		t.Errorf("stops %+v: want the field, the button, the colour, more and the file", stops)
	}
	p.Check("Red")
	if !p.Checked("Red") || p.Checked("Blue") {
		t.Error("red is not picked")
	}
	if name, b := p.Download("link", "File"); name != "f.txt" || string(b) != "content" {
		t.Errorf("file %q: %q", name, b)
	}
	p.Fill("Name", "Rex")
	p.FocusField("Name")
	p.Press("Enter")
	p.At(`^/next\?n=Rex`)
	p.SeeRole("heading", "Next")
	file := filepath.Join(t.TempDir(), "x.png")
	p.Shot(file)
	if i, err := os.Stat(file); err != nil || i.Size() < 1000 {
		t.Errorf("no picture: %v", err)
	}
}
