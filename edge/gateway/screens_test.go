package gateway_test

import (
	"fmt"
	"hash/crc32"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"kennel/edge/face"
	"kennel/edge/face/screen"
	"kennel/infra/browser"
	"kennel/infra/testwait"
)

// pixels is the CRC-32 of what the browser shows of the display, red, green and blue of each pixel.
const pixels = `(() => {
	const image = document.getElementById("screen"), canvas = document.createElement("canvas");
	canvas.width = 184; canvas.height = 96;
	const context = canvas.getContext("2d");
	context.drawImage(image, 0, 0);
	const data = context.getImageData(0, 0, 184, 96).data;
	let crc = -1;
	for (let i = 0; i < data.length; i++) {
		if (i % 4 == 3) continue;
		crc ^= data[i];
		for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? crc >>> 1 ^ 0xedb88320 : crc >>> 1;
	}
	return String(~crc >>> 0);
})()`

// board holds the page that a test makes the robot show.
type board struct{ atomic.Pointer[screen.Screen] }

func (b *board) notice() screen.Screen {
	if p := b.Load(); p != nil {
		return *p
	}
	return nil
}

// seeScreens shows every page of the display, one after the other, and sees it in the browser pixel by pixel as the robot draws it (issue 37, what must
// hold 4).
func seeScreens(t *testing.T, p *browser.Page, b *board) {
	t.Helper()
	for _, page := range []screen.Screen{
		screen.Pairing{Code: "K7QM-3XW9"}, screen.Fault{Code: "898", Words: "no frames from the body board"}, screen.Update{Done: 1, Of: 4, Version: "1.8.1"}, screen.Clock{Hour: 15, Minute: 7},
		screen.Weather{Condition: "Rain", Temperature: "7", Unit: "C", Place: "Graz"}, screen.Timer{Of: 6 * time.Minute}, screen.Care{Title: "Robot", Page: 1, Pages: 4, Rows: [screen.CareRows]screen.CareRow{{Name: "ESN", Value: "00e20145"}}},
	} {
		want := map[string]bool{}
		for at := time.Duration(0); at < 2*time.Second; at += 100 * time.Millisecond { // of a page that moves
			var rgb []byte
			for _, v := range screen.Picture(page, at).Pix {
				c := face.RGBA(v)
				rgb = append(rgb, c.R, c.G, c.B)
			}
			want[fmt.Sprint(crc32.ChecksumIEEE(rgb))] = true
		}
		b.Store(&page)
		testwait.Until(t, time.Minute, fmt.Sprintf("%T", page), func() error {
			if got := strings.Trim(string(p.Eval(pixels)), `"`); !want[got] {
				return fmt.Errorf("the browser shows another picture, %s", got)
			}
			return nil
		})
	}
	b.Store(nil)
}
