package mindlink

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	"kennel/infra/api/motionwire"
	"kennel/infra/errs"
	"kennel/infra/kit/kithttp"
	"kennel/infra/sockpath"
)

// Mind is the character as the server needs it. Its methods are safe for concurrent use.
type Mind interface {
	List(ctx context.Context) (List, error)
	// Play blocks until the animation has ended, of which tell hears the beginning and the progress. It ends with ctx. An error: it never began.
	Play(ctx context.Context, r Request, tell func(Progress) error) (Ended, error)
	Show(ctx context.Context, i Image) error
	Eyes(ctx context.Context, e Eyes) error
	// Body returns how the body is made, and the motions of its own library. An error with code "unable": it has no joints that move by motions.
	Body(ctx context.Context) (motionwire.Body, error)
	// Judge checks a motion for this body. The verdict has no hash.
	Judge(ctx context.Context, d Draft) (motionwire.Verdict, error)
	// Watch calls give with frames of the display until ctx ends or give fails. An error: this body has no display.
	Watch(ctx context.Context, rate float64, give func(Frame) error) error
}

// Our own limits.
const (
	maxBody  = 512 << 10
	patience = 2 * time.Second // for a caller that does not read
)

// Serve answers callers below root until ctx ends.
func Serve(ctx context.Context, root *os.Root, m Mind) error {
	mux := http.NewServeMux()
	mux.Handle("POST /list", ask(func(ctx context.Context, _ struct{}) (List, error) { return m.List(ctx) }))
	mux.Handle("POST /show", ask(func(ctx context.Context, i Image) (struct{}, error) {
		if len(i.Pixels) != ImageSize {
			return struct{}{}, errs.Coded(errs.Invalid, "invalid", "pixels: expected %d bytes, found %d", ImageSize, len(i.Pixels))
		}
		return struct{}{}, m.Show(ctx, i)
	}))
	mux.Handle("POST /eyes", ask(func(ctx context.Context, e Eyes) (struct{}, error) { return struct{}{}, m.Eyes(ctx, e) }))
	mux.Handle("POST /body", ask(func(ctx context.Context, _ struct{}) (motionwire.Body, error) { return m.Body(ctx) }))
	mux.Handle("POST /judge", ask(m.Judge))
	mux.HandleFunc("POST /play", func(w http.ResponseWriter, r *http.Request) { play(w, r, m) })
	mux.HandleFunc("POST /screen", func(w http.ResponseWriter, r *http.Request) { screen(w, r, m) })
	ln, err := sockpath.ListenPrivate(root, SocketPath)
	if err != nil {
		return fmt.Errorf("mind: %s: %w", SocketPath, err)
	}
	srv := &http.Server{Handler: mux, ReadHeaderTimeout: patience, BaseContext: func(net.Listener) context.Context { return ctx }}
	stop := context.AfterFunc(ctx, func() { _ = srv.Close() }) // who still plays hears the end of the connection
	defer stop()
	if err := srv.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func ask[Req, Resp any](do func(context.Context, Req) (Resp, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var req Req
		err := kithttp.ReadJSON(r, &req, maxBody)
		if err == nil {
			var resp Resp
			if resp, err = do(r.Context(), req); err == nil {
				kithttp.WriteJSON(w, http.StatusOK, resp)
				return
			}
		}
		kithttp.WriteError(w, err)
	})
}

// play plays, and tells the caller a line for each progress. The status says what is wrong only if it never began.
func play(w http.ResponseWriter, r *http.Request, m Mind) {
	var req Request
	if err := kithttp.ReadJSON(r, &req, maxBody); err != nil {
		kithttp.WriteError(w, err)
		return
	}
	out := http.NewResponseController(w)
	tell := func(p Progress) error {
		b, err := json.Marshal(p)
		if err != nil {
			return err
		}
		_ = out.SetWriteDeadline(time.Now().Add(patience)) // a closed one fails in Write
		if _, err := w.Write(append(b, '\n')); err != nil {
			return err
		}
		return out.Flush()
	}
	ended, err := m.Play(r.Context(), req, tell)
	if err != nil {
		kithttp.WriteError(w, err)
		return
	}
	_ = tell(Progress{Ended: &ended}) // a caller that is gone hears nothing
}

// screen sends frames until the caller leaves.
func screen(w http.ResponseWriter, r *http.Request, m Mind) {
	var req Watch
	err := kithttp.ReadJSON(r, &req, maxBody)
	if err == nil && !(req.Rate > 0 && req.Rate <= MaxRate+1) {
		err = errs.Coded(errs.Invalid, "invalid", "rate: expected above 0 to %.0f, found %v", MaxRate, req.Rate)
	}
	if err != nil {
		kithttp.WriteError(w, err)
		return
	}
	out := http.NewResponseController(w)
	b, begun := make([]byte, 0, frameHead+ImageSize), false
	err = m.Watch(r.Context(), req.Rate, func(f Frame) error {
		begun = true
		_ = out.SetWriteDeadline(time.Now().Add(patience)) // a closed one fails in Write
		if _, err := w.Write(appendFrame(b[:0], &f)); err != nil {
			return err
		}
		return out.Flush()
	})
	if err != nil && !begun {
		kithttp.WriteError(w, err)
	}
}
