package lifeos_test

import (
	"slices"
	"testing"

	"kennel/edge/body/pleo/lifeos"
	"kennel/edge/body/pleo/pleosim"
)

// TestProperties: ranges, capacity, the six names, and the old value as result (PLEO-PRP-03 to PLEO-PRP-06).
func TestProperties(t *testing.T) {
	p := start(t, lifeos.Config{Card: card(t, map[string]string{"main": `#include <Property.inc>
#include <Log.inc>
main() {
	printf("%d", set(property_mood, 2));
	printf("%d", property_set(property_mood, 0x3FFFFFFF));
	printf("%d %d", get_property(property_mood), get(property_platform));
	printf("%d", set_property(property_mood, 0x40000000));
	printf("%d %d", property_get(property_mood), get(property_name: 400));
	new n = 0;
	for (new i = 0; i < 200; i++)
		if (set(property_name: (0x5000 + i), i) == 0)
			n++;
	printf("%d", n);
	sleep 1000000;
}`})})
	p.run(second)
	p.want("0", "2", "1073741823 4", "-1", "1073741823 -1", "187")
	if got := property(t, p, 0x5000+186); got != 186 {
		t.Errorf("the last property is %d, want 186", got)
	}
}

// TestReports: on_property at each crossing of the threshold and after a large change, from leaks too; at most four (PLEO-REP-01 to PLEO-REP-05).
func TestReports(t *testing.T) {
	p := start(t, lifeos.Config{Card: card(t, map[string]string{
		"sensors": `#include <Property.inc>
#include <Log.inc>
public on_property(time, property_name: property, value) printf("%d is %d", property, value)`,
		"main": `#include <Property.inc>
#include <Log.inc>
main() {
	property_add_report(property_mood, 0, 10);
	add_reporter(property_age, 5, 1000);
	add_reporter(property_health, 0, 3);
	add_reporter(property_health, 0, 4);
	printf("fifth %d", add_reporter(property_health, 0, 5));
	set(property_mood, 9); sleep 20;
	set(property_mood, 12); sleep 20;
	set(property_mood, 15); sleep 20;
	set(property_mood, 10); sleep 20;
	set(property_age, 4); sleep 20;
	set(property_age, 5); sleep 20;
	set(property_age, 9); sleep 20;
	property_enable_reporting(false);
	set(property_mood, 0); sleep 20;
	property_enable_reporting(true);
	property_set_leak(property_health, 1, 100, 3, 0);
	sleep 1000000;
}`})})
	p.run(second)
	p.want("fifth 0", "8 is 12", "8 is 10", "4 is 5", "7 is 3")
}

// TestPersistence: a file of all properties survives a power cycle; properties that it does not have become 0 (PLEO-PER-01 to PLEO-PER-03).
func TestPersistence(t *testing.T) {
	c := card(t, map[string]string{"main": `#include <Property.inc>
#include <Log.inc>
main() {
	printf("load %d", property_load("b:memory.txt"));
	printf("%d %d", get(property_mood), get(property_name: 0x5003));
	set(property_mood, 7);
	set(property_name: 0x5003, -44);
	printf("save %d", property_save("b:memory.txt"));
	sleep 1000000;
}`})
	flash := pleosim.Card{}
	for _, want := range [][]string{{"load 0", "0 0", "save 1"}, {"load 1", "7 -44", "save 1"}} {
		p := start(t, lifeos.Config{Card: c, Flash: flash})
		p.run(second)
		p.want(want...)
	}
	list, err := lifeos.ReadProperties(flash["memory.txt"])
	if err != nil || !slices.Contains(list, lifeos.SavedProperty{ID: 8, Name: "mood", Value: 7}) {
		t.Errorf("file: %v %v", list, err)
	}
}

// FuzzReadProperties: what is read can be written and read again.
func FuzzReadProperties(f *testing.F) {
	f.Add([]byte("pleo properties 1\n8 mood 7\n20483 - -44\n"))
	f.Add([]byte("pleo properties 1\n8 mood 7\n8 mood 7\n"))
	f.Fuzz(func(t *testing.T, file []byte) {
		list, err := lifeos.ReadProperties(file)
		if err != nil {
			return
		}
		again, err := lifeos.ReadProperties(lifeos.AppendProperties(nil, list))
		if err != nil || !slices.Equal(list, again) {
			t.Errorf("%v, then %v: %v", list, again, err)
		}
	})
}
