package intents

import (
	"context"
	"time"

	"kennel/edge/face/screen"
	"kennel/edge/mind/mindlink"
	"kennel/infra/logging"
)

// Display shows pages instead of the robot's eyes (mindlink.Client).
type Display interface {
	Page(ctx context.Context, p mindlink.Page) error
}

// pageFor is how long the page of an answer is shown; own default.
const pageFor = 8 * time.Second

// show puts a page on the display for a time, or with an empty one takes this program's page away. It returns the page's number, for hide. A robot without a display
// answers in words alone.
func (x *Intents) show(ctx context.Context, p mindlink.Page, long time.Duration) int {
	x.paging.Lock()
	defer x.paging.Unlock()
	x.pages++
	x.put(ctx, p, long)
	return x.pages
}

// hide takes a page away, unless another one was shown since.
func (x *Intents) hide(ctx context.Context, page int) {
	x.paging.Lock()
	defer x.paging.Unlock()
	if x.pages == page {
		x.put(ctx, mindlink.Page{}, 0)
	}
}

// put asks for a page; paging is held.
func (x *Intents) put(ctx context.Context, p mindlink.Page, long time.Duration) {
	if x.cfg.Display == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), beginsIn)
	defer cancel()
	p.Program, p.ForMS = program, long.Milliseconds()
	if err := x.cfg.Display.Page(ctx, p); err != nil {
		x.cfg.Log.DebugContext(ctx, "page not shown", logging.Err, err)
	}
}

// showTimer shows the timer that counts down.
func (x *Intents) showTimer(ctx context.Context) {
	if left, of, ok := x.timer.counts(); ok {
		x.show(ctx, mindlink.Page{Timer: &screen.Timer{Left: max(left, 0), Of: of}}, pageFor)
	}
}
