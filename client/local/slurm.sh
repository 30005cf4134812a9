# What an allocation of Slurm does; `tactus slurm` writes the lines before this one.

set -uo pipefail
umask 077
# What the submitting shell had for other coordinators.
unset TACTUS_SERVER TACTUS_CONTEXT TACTUS_TLS_DIR TACTUS_INSECURE TACTUS_AGENT_TLS_DIR TACTUS_COORDINATOR_TLS_DIR
mkdir -p "$folder/log"

say() { echo "tactus: $*" >&2; }
give_up() {
  say "$*"
  stop_all
  exit 1
}
tactus() { "$bin/tactus" "${to_server[@]}" "$@"; }
# state_of_job: SUCCEEDED, PAUSED and so on; empty where nobody answers.
state_of_job() { tactus get job "$job" -o json 2>/dev/null | grep -o '"JOB_STATE_[A-Z_]*"' | head -1 | tr -d '"' | sed 's/JOB_STATE_//'; }
is_over() { [[ $(state_of_job) =~ ^(SUCCEEDED|FAILED|CANCELLED)$ ]]; }

# What others of the allocation reach this node by. A node's own name is often that of its loopback, which nobody else
# reaches; then it is the first address that it has.
address_here() {
  local name address=
  if [[ -n $interface ]]; then
    address=$(ip -o -4 address show dev "$interface" | awk '{sub("/.*", "", $4); print $4; exit}')
  else
    name=$(scontrol show node "$SLURMD_NODENAME" | grep -o 'NodeAddr=[^ ]*' | cut -d= -f2)
    address=$(getent ahostsv4 "${name:-$SLURMD_NODENAME}" | awk '{print $1; exit}')
    [[ -n $address && ($address != 127.* || $address == "$name") ]] || address=$(hostname -I | awk '{print $1}')
  fi
  echo "$address"
}

# On every node, as its task: what it offers is what Slurm gave it.
be_agent() {
  local address devices security=(--insecure)
  address=$(address_here)
  if [[ ${CUDA_VISIBLE_DEVICES:-} =~ ^[0-9]+(,[0-9]+)*$ ]]; then
    devices=cuda:${CUDA_VISIBLE_DEVICES//,/,cuda:}
  else
    devices=$(seq -s , -f cpu:%.0f 0 $((workers - 1)))
  fi
  [[ -z $agent_tls ]] || security=(--tls-dir "${agent_tls//%N/$SLURMD_NODENAME}")
  # This becomes the agent, so that it alone gets the signals that srun passes on.
  exec "$bin/tactus-agent" --coordinator "$server" --node "$SLURMD_NODENAME" --address "$address" --devices "$devices" \
    --state-dir "$local_folder-$SLURMD_NODENAME" --drain-deadline "${notice}s" --label "slurm-job=$allocation" \
    --label "partition=${SLURM_JOB_PARTITION:-none}" "${security[@]}" >>"$folder/log/agent-$SLURMD_NODENAME.log" 2>&1
}

# Certificates of this allocation alone: who else is on the network is not let in.
issue_certificates() {
  local node
  rm -rf "$folder/tls" && mkdir "$folder/tls"
  "$bin/tactus" admin init-ca --out "$folder/tls/ca" >/dev/null 2>"$folder/log/init-ca.log" || return
  "$bin/tactus" admin issue --coordinator --ca "$folder/tls/ca" --out "$folder/tls/coordinator" --days 60 >/dev/null || return
  "$bin/tactus" admin issue --user admin --ca "$folder/tls/ca" --out "$folder/tls/user" --days 60 >/dev/null || return
  for node in $(all_nodes); do
    "$bin/tactus" admin issue --node "$node" --ca "$folder/tls/ca" --out "$folder/tls/node-$node" --days 60 >/dev/null || return
  done
  rm -f "$folder/tls/ca/ca-key.pem" "$folder/log/init-ca.log"  # nobody else joins
}
all_nodes() {
  local group list
  for ((group = 0; group < groups; ++group)); do
    list=SLURM_JOB_NODELIST_HET_GROUP_$group
    scontrol show hostnames "${!list:-$SLURM_JOB_NODELIST}"
  done
}

coordinator=
start_coordinator() {
  local address security=(--insecure)
  address=$(address_here)
  [[ -n $address ]] || give_up "this node has no address; name its network by tactus slurm --interface"
  to_server=(--insecure)
  agent_tls=
  if [[ $tls == yes ]]; then
    issue_certificates || give_up "there are no certificates, see above"
    security=(--tls-dir "$folder/tls/coordinator")
    to_server=(--tls-dir "$folder/tls/user")
    agent_tls=$folder/tls/node-%N
  fi
  rm -f "$folder/address"
  # It outlives the notice.
  (trap '' USR1 TERM && exec "$bin/tactus-coordinator" --listen "$address:0" --address-file "$folder/address" --state-dir "$folder/state" \
    --metrics-listen 127.0.0.1:0 "${security[@]}" >>"$folder/log/coordinator.log" 2>&1) &
  coordinator=$!
  until [[ -s $folder/address ]]; do
    kill -0 "$coordinator" 2>/dev/null || give_up "the coordinator ended: $(tail -1 "$folder/log/coordinator.log")"
    sleep 0.2
  done
  server=$(sed -n 's/^grpc=//p' "$folder/address")
  to_server=(--server "$server" "${to_server[@]}")
  say "coordinator at $server; from elsewhere: $bin/tactus ${to_server[*]} get jobs"
}

# One srun for each group of nodes. A node that is lost takes nothing else with it.
agents=()
start_agents() {
  local group within
  export bin folder server interface agent_tls notice local_folder allocation
  for ((group = 0; group < groups; ++group)); do
    within=()
    ((groups == 1)) || within=(--het-group="$group")
    workers=${workers_of[group]} srun "${within[@]}" --ntasks-per-node=1 --no-kill --kill-on-bad-exit=0 --wait=0 --overlap --mem=0 \
      --cpu-bind=none --export=ALL bash -c "$(declare -f address_here be_agent); be_agent" &
    agents+=($!)
  done
}

# Agents leave in time at SIGUSR1, which srun passes on; at SIGTERM it would end them at once.
stop_all() {
  local one within end=$((SECONDS + notice / 4 + 5))
  for one in "${agents[@]}"; do kill -USR1 "$one" 2>/dev/null; done
  for one in "${agents[@]}"; do
    while kill -0 "$one" 2>/dev/null && ((SECONDS < end)); do sleep 0.2; done
    kill -KILL "$one" 2>/dev/null
  done
  if [[ -n $coordinator ]]; then
    kill -INT "$coordinator" 2>/dev/null
    while kill -0 "$coordinator" 2>/dev/null && ((SECONDS < end + 10)); do sleep 0.2; done
    kill -KILL "$coordinator" 2>/dev/null
  fi
  for ((one = 0; one < groups && ${#agents[@]} > 0; ++one)); do  # what agents kept on their nodes
    within=()
    ((groups == 1)) || within=(--het-group="$one")
    timeout 10 srun "${within[@]}" --ntasks-per-node=1 --no-kill --overlap --mem=0 bash -c 'rm -rf "$local_folder-$SLURMD_NODENAME"' >/dev/null 2>&1
  done
}

# The job of this folder: a new one, or that of an allocation before this one.
job=
take_job() {
  if [[ -s $folder/job ]]; then
    job=$(<"$folder/job")
    if [[ $(state_of_job) == PAUSED ]]; then
      tactus resume "$job" >/dev/null || give_up "$job cannot be resumed"
      say "$job goes on from its checkpoint"
    fi
    return
  fi
  job=$(tactus submit "$job_file" "${sets[@]/#/--set=}" -o name) || give_up "$job_file was not taken, see above"
  job=${job##*/}
  echo "$job" >"$folder/job"
  say "$job submitted"
}

# Before the allocation ends: the job keeps a checkpoint, or ends with the result that it has.
end_in_time() {
  local word=pause state=PAUSED
  if [[ $at_end == finish ]]; then word=cancel state=CANCELLED; fi
  say "the allocation ends soon: tactus $word $job"
  tactus "$word" "$job" >/dev/null
  tactus wait "$job" --for "state=$state" --timeout "$((notice * 3 / 4))s" || say "$job is $(state_of_job) and not $state in time"
}

fetch() {
  tactus describe job "$job" >"$folder/job.txt"
  case $(state_of_job) in
    PAUSED) say "$job is paused, with its last checkpoint in $folder/state: it goes on when this is submitted again" ;;
    *) tactus download "$job" --to "$folder/result" >/dev/null && say "$job is $(state_of_job); its result is in $folder/result" ;;
  esac
}

ending=
trap 'ending=yes' USR1 TERM
groups=${SLURM_HET_SIZE:-1}
allocation=$SLURM_JOB_ID
local_folder=$scratch/tactus-$allocation
own=
[[ -n $server ]] || own=yes
if [[ -n $own ]]; then start_coordinator; fi
start_agents
if [[ -n $job_file ]]; then
  take_job
  waiting=
  until [[ -n $ending ]] || is_over; do
    # A signal ends the wait, and not what is waited for.
    tactus wait "$job" --for state=SUCCEEDED --timeout 1h 2>/dev/null &
    waiting=$!
    wait "$waiting"
    [[ -n $ending || $? != 6 ]] || sleep 5
    [[ -z $own ]] || kill -0 "$coordinator" 2>/dev/null || give_up "the coordinator ended: $(tail -1 "$folder/log/coordinator.log")"
  done
  kill "$waiting" 2>/dev/null
  if [[ -n $own ]] && ! is_over; then end_in_time; fi
  if [[ -n $own ]] || is_over; then fetch; fi
  state=$(state_of_job)
else
  say "these nodes are at $server until the allocation ends"
  until [[ -n $ending ]]; do wait "${agents[@]}"; kill -0 "${agents[@]}" 2>/dev/null || break; done
  state=LEFT
fi
stop_all
if [[ $requeue == yes && $state =~ ^(PAUSED|QUEUED|RUNNING|SUSPENDING)$ ]]; then
  say "requeued, to go on"
  scontrol requeue "$SLURM_JOB_ID"
fi
[[ $state != FAILED ]]
