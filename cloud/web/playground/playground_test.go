package playground

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"kennel/infra/browser"
)

// largest is the limit of the module as it is sent, in bytes.
const largest = 2 << 20

// build makes the module and its loader as make does.
func build(t *testing.T) (module, loader []byte) {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.Command("go", "build", "-ldflags=-s -w", "-o", filepath.Join(dir, "playground.wasm"), "kennel/cmd/playground")
	cmd.Env = append(os.Environ(), "GOOS=js", "GOARCH=wasm", "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	if module, err = os.ReadFile(filepath.Join(dir, "playground.wasm")); err != nil {
		t.Fatal(err)
	}
	if loader, err = os.ReadFile(filepath.Join(strings.TrimSpace(string(root)), "lib/wasm/wasm_exec.js")); err != nil {
		t.Fatal(err)
	}
	return module, loader
}

// TestPlayground: in a browser a script compiles and runs, an error leads to its line and column, and a script pauses before a line and continues by steps; the module
// is small. A server without the module says so.
func TestPlayground(t *testing.T) {
	wasm, loader := build(t)
	var packed bytes.Buffer
	z, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := z.Write(wasm); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d bytes, %d compressed", len(wasm), packed.Len())
	if packed.Len() > largest {
		t.Errorf("%d bytes compressed, want at most %d", packed.Len(), largest)
	}
	mux := http.NewServeMux()
	Mount(mux)
	built := true
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch strings.TrimPrefix(r.URL.Path, "/playground/") { // what is embedded depends on whether make has run
		case module:
			if !built {
				http.NotFound(w, r)
				return
			}
			head(w, kinds[".wasm"])
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(packed.Bytes())
		case "wasm_exec.js":
			head(w, kinds[".js"])
			_, _ = w.Write(loader)
		default:
			mux.ServeHTTP(w, r)
		}
	}))
	defer server.Close()
	p := browser.Start(t).Page(t, browser.Desktop)
	p.Goto(server.URL + "/playground")
	p.SeeIn("status", "", "Ready.")
	p.Click("button", "Run")
	p.SeeIn("log", "Output", "Hello, Pleo!")
	p.SeeIn("status", "", "Done; main returned 0.")
	p.Choose("Example", "An error")
	p.Click("button", "Run")
	p.Click("button", "Line 3, column 2: error 17")
	if at := string(p.Eval(`document.getElementById("script").selectionStart`)); at != "27" {
		t.Errorf("the error is at %s, want 27", at)
	}
	p.Choose("Example", "Fibonacci")
	p.Fill("Pause before lines, such as 4, 9", "9")
	p.Focus("button", "Run")
	p.Press("Enter")
	p.SeeIn("status", "", "Paused before line 9 in main.")
	p.SeeIn("group", "Variables", "i")
	p.Click("button", "Step")
	p.SeeIn("status", "", "Paused before line 2 in fib.")
	p.Fill("Pause before lines, such as 4, 9", "")
	p.Click("button", "Continue")
	p.SeeIn("status", "", "Done; main returned 6765.")
	p.SeeIn("log", "Output", "0 1 1 2 3 5 8 13 21 34 55 89")
	p.Fill("Pause when variables change, such as total, n", "i")
	p.Click("button", "Run")
	p.SeeIn("status", "", "Paused before line 8 in main. i changed from 0 to 1.")
	p.Fill("Pause when variables change, such as total, n", "")
	p.Choose("Example", "Pleo: two drives")
	p.Click("button", "Run")
	p.SeeIn("region", "Pleo", "hunger, active drive")
	p.Fill("Pause before lines, such as 4, 9", "11")
	p.Click("button", "Touch its chin")
	p.SeeIn("status", "", "Paused before line 11 in on_sensor.")
	p.SeeIn("group", "Variables", "sensor")
	p.Fill("Pause before lines, such as 4, 9", "")
	p.Click("button", "Continue")
	p.SeeIn("region", "Pleo", "energy")
	p.SeeIn("region", "Pleo", "social, active drive")
	if n := string(p.Eval(`document.querySelectorAll("#curves polyline").length`)); n == "0" || n == "1" {
		t.Errorf("%s curves", n)
	}
	if shot := os.Getenv("KENNEL_SHOT"); shot != "" {
		p.Shot(shot + ".pleo.png")
	}
	p.Click("button", "Stop")
	p.Choose("Run it", "in a console")
	p.Fill("Text", "main() { for (;;) {} }")
	p.Click("button", "Run")
	p.SeeIn("status", "", "Running.")
	p.Click("button", "Stop")
	p.SeeIn("status", "", "Stopped.")
	p.Fill("Text", "main() {\n\tnew a[2]\n\tnew i = 2\n\treturn a[i]\n}\n")
	p.Click("button", "Run")
	p.SeeIn("status", "", "Stopped in line 4: out of bounds (error 4).")
	p.Sound(browser.Phone, browser.Desktop)
	if shot := os.Getenv("KENNEL_SHOT"); shot != "" {
		p.Shot(shot)
	}
	if faults := p.Faults(); len(faults) > 0 {
		t.Error(faults)
	}
	built = false
	p.Reload()
	p.See("build it with make")
}

// TestFiles: what is served has its kind and the policy, and nothing else is.
func TestFiles(t *testing.T) {
	mux := http.NewServeMux()
	Mount(mux)
	for path, kind := range map[string]string{"/playground": "text/html", "/playground/playground.mjs": "text/javascript", "/playground/playground.css": "text/css",
		"/playground/README.md": "", "/playground/..%2fbuilt%2fREADME.md": "", "/playground/none.mjs": ""} {
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		if kind == "" {
			if w.Code != http.StatusNotFound {
				t.Errorf("%s: %d, want none", path, w.Code)
			}
			continue
		}
		if w.Code != http.StatusOK || !strings.HasPrefix(w.Header().Get("Content-Type"), kind) || w.Header().Get("Content-Security-Policy") != policy {
			t.Errorf("%s: %d %v", path, w.Code, w.Header())
		}
	}
}
