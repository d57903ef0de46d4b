# [--optimized-for-gds]
case $* in
  '' | --optimized-for-gds) ;;
  *) echo "Unknown option: $*" >&2 && exit 1 ;;
esac
[[ -e $FAKE/modules/kefalnd ]] || { echo "modprobe: FATAL: Module kefalnd not found" >&2 && exit 1; }
unit=$FAKE/units/configure-efa-fsx-lustre-client
mkdir -p "$unit" "$FAKE/lnet"
if [[ -e $ULTRACLUSTER_ROOT/sys/module/libcfs ]]; then echo 1; else cat "$FAKE/fsx_interfaces"; fi >"$FAKE/lnet/efa"
mkdir -p "$ULTRACLUSTER_ROOT"/sys/module/{libcfs,lnet}
touch "$unit"/{enabled,active}
