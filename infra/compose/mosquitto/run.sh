# Runs Mosquitto and has it read the list of revoked robots again (SIGHUP) whenever kenneld has written another: nobody else can tell it from
# outside of this container. Usage: sh run.sh MOSQUITTO_CONF LIST
#
# Mosquitto forgets a signal that comes while it reads for another one (it clears its mark when it is done), so each is sent twice.
#
# For any POSIX sh with stat -c: that of the image (busybox) and Debian's.
stamp() { stat -c '%i %s %Y' "$list" 2>/dev/null; }

list=$2
read=$(stamp) # before Mosquitto reads it
mosquitto -c "$1" &
broker=$!
trap 'kill -TERM $broker; wait $broker; exit' TERM INT
asked= # by people; only noted here, so that what the loop says about its second telling is never lost
trap 'asked=1' HUP
again=0 # turns until the signal is sent once more; 0: never
while kill -0 $broker 2>/dev/null; do
	sleep 1 &
	wait $! # returns for a signal as well
	now=$(stamp)
	if [ -n "$asked" ] || { [ -n "$now" ] && [ "$now" != "$read" ]; }; then
		next=3
	elif [ $again -gt 0 ]; then
		again=$((again - 1)) next=0
		[ $again -eq 0 ] || continue
	else
		continue
	fi
	# A Mosquitto that does not handle the signal yet would die of it; it is the lowest bit of those that a process handles.
	caught=$(sed -n 's/^SigCgt:.*\(.\)$/\1/p' /proc/$broker/status 2>/dev/null)
	case $caught in
	[13579bdf])
		asked= read=$now again=$next
		kill -HUP $broker
		;;
	esac
done
wait $broker
