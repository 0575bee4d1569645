package status

import (
	"reflect"
	"testing"
)

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"v":1,"state":"online","boot_id":"b","connect_seq":3,"seq":1,"lease_ms":45000,"docs":{"vic.RobotSettings":2}}`))
	f.Add([]byte(`{"v":1,"state":"gone","boot_id":"b","connect_seq":3}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := Parse(b)
		if err != nil {
			return
		}
		again, err := m.Encode()
		if err != nil {
			t.Fatal(err)
		}
		m2, err := Parse(again)
		if err != nil || m2.ConnectSeq != m.ConnectSeq || !reflect.DeepEqual(m2.Loop, m.Loop) {
			t.Fatalf("%+v -> %+v, %v", m, m2, err)
		}
	})
}
