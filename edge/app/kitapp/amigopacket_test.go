package kitapp

import (
	"encoding/hex"
	"encoding/json"
	"strings"
	"testing"

	"kennel/edge/body/amigobot/sip"
)

// TestReadPacket: the golden packets of every type in SI units (AMIGO-PKT-13, AMIGO-SIP-02 to 19, AMIGO-XP-02 to 17).
func TestReadPacket(t *testing.T) {
	for _, tt := range []struct{ name, frame, kind, text, json string }{
		{"sync1", "FAFB03010001", "sync1", "", ""},
		{"identity", "FAFB19026E6F745F7365740050696F6E65657200616D69676F004998", "identity", "not_set, Pioneer amigo",
			`{"name":"not_set","class":"Pioneer","subclass":"amigo"}`},
		{"idle", "FAFB1B32000000000000000000007800000000020000000100000000" + "3578", "standard",
			"x 0.000 m, y 0.000 m, heading 0.000 rad (to 0.000), left 0.000 m/s, right 0.000 m/s, 12.0 V, sonar on, analog 1 0.00 V, in 000000, out 000000",
			`"ranges":[]`},
		{"moving", "FAFB2133AF07287C00024501" + "5EFF7B000100020300000200D204018813010080210" + "2CB03", "standard",
			"x 1.000 m, y -0.500 m, heading 0.785 rad (to 0.785), left 0.200 m/s, right -0.100 m/s, 12.3 V, motors on, sonar on, " +
				"right wheel stalled, sonar 0 1.234 m, sonar 1 5.000 m, analog 1 2.51 V, in 100001, out 000010",
			`"ranges":[{"sonar":0,"range_m":1.234},{"sonar":1,"range_m":5}]`},
		{"encoders", "FAFB0B90A08601006079FEFF9000", "encoders", "left 3.2896 m, right -3.2896 m", `"left_m":3.289`},
		{"serial", "FAFB07B04F4B0D0AFB56", "serial", "AUX1 4f4b0d0a", `{"port":"AUX1","hex":"4f4b0d0a"}`},
		{"io", "FAFB12F0012101020500000002000" + "4FF0764007614", "io", "in 21, out 02, analog [0.00 1.25 2.50 5.00 0.24] V", `"digital_in":"21"`},
		{"playlist", "FAFB1DD0320168656C6C6F00000000000000000000000010000028230000D69D", "playlist", `sound 50 "hello", 1.00 s, sounds on: true`,
			`{"sound":50,"on":true,"name":"hello","offset":4096,"seconds":1}`},
		{"unknown", "", "unknown", "77", `{"hex":"77"}`},
		{"cut short", "", "unknown", "90aa", `{"hex":"90aa"}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			payload, err := hex.DecodeString(tt.text)
			if tt.frame != "" {
				frame, _ := hex.DecodeString(tt.frame) // a bad one does not parse
				payload, _, err = sip.ParseFrame(frame)
			}
			if err != nil {
				t.Fatal(err)
			}
			got := readPacket(payload)
			data, err := json.Marshal(got.Data)
			if err != nil || got.Packet != tt.kind || got.text != tt.text || !strings.Contains(string(data), tt.json) {
				t.Errorf("got %s %q %s (%v), want %s %q %s", got.Packet, got.text, data, err, tt.kind, tt.text, tt.json)
			}
		})
	}
	c := &sip.Config{Type: "Pioneer", Name: "Rover", RevCount: 23310}
	frame, err := c.Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	payload, _, _ := sip.ParseFrame(frame) // of Append
	if got := readPacket(payload); got.Packet != "config" || !strings.Contains(got.text, "Name:Rover") || !strings.Contains(got.text, "RevCount:23310") {
		t.Errorf("config: %+v", got)
	}
}

// FuzzReadPacket: any payload is described.
func FuzzReadPacket(f *testing.F) {
	for _, kind := range []byte{sip.TypeIdentity, sip.TypeConfig, sip.TypeMoving, sip.TypeEncoders, sip.TypeAux1, sip.TypePlaylist, sip.TypeIO} {
		f.Add(append([]byte{kind}, make([]byte, 100)...))
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		if len(payload) == 0 {
			return // no packet
		}
		if p := readPacket(payload); p.Packet == "" {
			t.Errorf("%x: %+v", payload, p)
		}
	})
}
