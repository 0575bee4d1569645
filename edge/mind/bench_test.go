package mind

import (
	"testing"
	"time"

	"kennel/edge/anim/clip"
	"kennel/edge/anim/repertoire"
	"kennel/edge/mind/mindlink"
)

// BenchmarkStep is one step of a clip whose face is drawn for a program that looks, as 33 a second are: issue 37 wants less than 1 ms. The metric "core" is the
// share of a core.
func BenchmarkStep(b *testing.B) {
	l, err := repertoire.Library()
	if err != nil {
		b.Fatal(err)
	}
	m, err := New(Config{Library: l})
	if err != nil {
		b.Fatal(err)
	}
	w := &watcher{every: clip.Step, next: make(chan mindlink.Frame, 1)}
	m.screen.watchers[w] = true
	now := time.Duration(0)
	if err := m.player.Start(now, l.Clips["anim_mood_happy_01"], clip.Options{Loops: clip.Forever}); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		now += clip.Step
		m.step(now)
		<-w.next
	}
	b.ReportMetric(float64(b.Elapsed())/float64(b.N)/float64(clip.Step), "core")
}
