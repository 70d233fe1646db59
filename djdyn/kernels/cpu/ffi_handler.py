"""The function that XLA calls: takes buffers from its call frame and runs its threads.

Offsets are those of XLA's typed foreign function interface, version 0.3 (`c_api.h`); a
test compares them with the header that jaxlib ships.

Threads take blocks of groups of lanes from a shared counter. The caller works too and
waits only for groups that a thread has taken, so a busy pool cannot block it; the last
holder frees the counter.
"""

OFFSETS = {
    "XLA_FFI_CallFrame.extension_start": 8,
    "XLA_FFI_CallFrame.api": 16,
    "XLA_FFI_CallFrame.ctx": 24,
    "XLA_FFI_CallFrame.args.size": 56,
    "XLA_FFI_CallFrame.args.args": 72,
    "XLA_FFI_CallFrame.rets.size": 96,
    "XLA_FFI_CallFrame.rets.rets": 112,
    "XLA_FFI_Buffer.data": 24,
    "XLA_FFI_Buffer.dims": 40,
    "XLA_FFI_Metadata_Extension.metadata": 24,
    "XLA_FFI_Metadata.api_version.major_version": 24,
    "XLA_FFI_Metadata.api_version.minor_version": 28,
    "XLA_FFI_Api.XLA_FFI_ThreadPool_Schedule": 136,
    "XLA_FFI_Api.XLA_FFI_ThreadPool_NumThreads": 144,
    "XLA_FFI_ThreadPool_Schedule_Args.ctx": 16,
    "XLA_FFI_ThreadPool_Schedule_Args.task": 24,
    "XLA_FFI_ThreadPool_Schedule_Args.data": 32,
    "XLA_FFI_ThreadPool_NumThreads_Args.ctx": 16,
    "XLA_FFI_ThreadPool_NumThreads_Args.num_threads": 24,
}
VERSION = (0, 3)
BLOCKS_PER_THREAD = 8  # so that the threads end at about the same time

# The shared counter: next block, groups done, holders, groups, block, end, args, rets.
ASSEMBLY = """
declare ptr @aligned_alloc(i64, i64)
declare ptr @malloc(i64)
declare void @free(ptr)
declare i32 @sched_yield()

define internal void @work(ptr %s) {{
entry:
  %frame = call ptr @aligned_alloc(i64 64, i64 {frame})
  %done.at = getelementptr i64, ptr %s, i64 1
  %groups.at = getelementptr i64, ptr %s, i64 3
  %groups = load i64, ptr %groups.at
  %block.at = getelementptr i64, ptr %s, i64 4
  %block = load i64, ptr %block.at
  %end.at = getelementptr i64, ptr %s, i64 5
  %end = load i64, ptr %end.at
  %args.at = getelementptr i64, ptr %s, i64 6
  %args = load ptr, ptr %args.at
  %rets.at = getelementptr i64, ptr %s, i64 7
  %rets = load ptr, ptr %rets.at
  br label %take
take:
  %first = atomicrmw add ptr %s, i64 %block seq_cst
  %some = icmp slt i64 %first, %groups
  br i1 %some, label %do, label %out
do:
  %past = add i64 %first, %block
  %over = icmp sgt i64 %past, %groups
  %last = select i1 %over, i64 %groups, i64 %past
  call void @run(ptr %args, ptr %rets, i64 %first, i64 %last, i64 %end, ptr %frame)
  %count = sub i64 %last, %first
  %before = atomicrmw add ptr %done.at, i64 %count seq_cst
  br label %take
out:
  call void @free(ptr %frame)
  ret void
}}

define internal void @drop(ptr %s) {{
  %holders = getelementptr i64, ptr %s, i64 2
  %left = atomicrmw sub ptr %holders, i64 1 seq_cst
  %last = icmp eq i64 %left, 1
  br i1 %last, label %free, label %out
free:
  call void @free(ptr %s)
  br label %out
out:
  ret void
}}

define internal void @task(ptr %s) {{
  call void @work(ptr %s)
  call void @drop(ptr %s)
  ret void
}}

define internal void @pointers(ptr %buffers, i64 %count, ptr %to) {{
entry:
  br label %next
next:
  %i = phi i64 [ 0, %entry ], [ %i1, %one ]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %one, label %out
one:
  %at = getelementptr ptr, ptr %buffers, i64 %i
  %buffer = load ptr, ptr %at
  %data.at = getelementptr i8, ptr %buffer, i64 24
  %data = load ptr, ptr %data.at
  %here = getelementptr ptr, ptr %to, i64 %i
  store ptr %data, ptr %here
  %i1 = add i64 %i, 1
  br label %next
out:
  ret void
}}

define ptr @handler(ptr %cf) {{
entry:
  %ext.at = getelementptr i8, ptr %cf, i64 8
  %ext = load ptr, ptr %ext.at
  %is.call = icmp eq ptr %ext, null
  br i1 %is.call, label %call, label %query
query:
  %meta.at = getelementptr i8, ptr %ext, i64 24
  %meta = load ptr, ptr %meta.at
  %major = getelementptr i8, ptr %meta, i64 24
  store i32 {major}, ptr %major
  %minor = getelementptr i8, ptr %meta, i64 28
  store i32 {minor}, ptr %minor
  ret ptr null
call:
  %n.at = getelementptr i8, ptr %cf, i64 56
  %n = load i64, ptr %n.at
  %args.at = getelementptr i8, ptr %cf, i64 72
  %args.buffers = load ptr, ptr %args.at
  %args = alloca ptr, i64 %n
  call void @pointers(ptr %args.buffers, i64 %n, ptr %args)
  %m.at = getelementptr i8, ptr %cf, i64 96
  %m = load i64, ptr %m.at
  %rets.at = getelementptr i8, ptr %cf, i64 112
  %rets.buffers = load ptr, ptr %rets.at
  %rets = alloca ptr, i64 %m
  call void @pointers(ptr %rets.buffers, i64 %m, ptr %rets)
{batch}
  %end = sub i64 %batch, 1
  %up = add i64 %batch, {lanes_less_one}
  %groups = udiv i64 %up, {lanes}
  %s = call ptr @malloc(i64 64)
  store i64 0, ptr %s
  %done.at = getelementptr i64, ptr %s, i64 1
  store i64 0, ptr %done.at
  %holders.at = getelementptr i64, ptr %s, i64 2
  store i64 1, ptr %holders.at
  %groups.at = getelementptr i64, ptr %s, i64 3
  store i64 %groups, ptr %groups.at
  %block.at = getelementptr i64, ptr %s, i64 4
  store i64 %groups, ptr %block.at
  %end.at = getelementptr i64, ptr %s, i64 5
  store i64 %end, ptr %end.at
  %to.args = getelementptr i64, ptr %s, i64 6
  store ptr %args, ptr %to.args
  %to.rets = getelementptr i64, ptr %s, i64 7
  store ptr %rets, ptr %to.rets
  %many = icmp sgt i64 %groups, 1
  br i1 %many, label %share, label %alone
share:
  %api.at = getelementptr i8, ptr %cf, i64 16
  %api = load ptr, ptr %api.at
  %ctx.at = getelementptr i8, ptr %cf, i64 24
  %ctx = load ptr, ptr %ctx.at
  %threads.at = alloca i64
  store i64 1, ptr %threads.at
  %ask = alloca [4 x i64]
  store i64 32, ptr %ask
  %ask1 = getelementptr i64, ptr %ask, i64 1
  store ptr null, ptr %ask1
  %ask2 = getelementptr i64, ptr %ask, i64 2
  store ptr %ctx, ptr %ask2
  %ask3 = getelementptr i64, ptr %ask, i64 3
  store ptr %threads.at, ptr %ask3
  %count.at = getelementptr i8, ptr %api, i64 144
  %count = load ptr, ptr %count.at
  %no.pool = call ptr %count(ptr %ask)
  %threads = load i64, ptr %threads.at
  %pieces = mul i64 %threads, {blocks}
  %fine = udiv i64 %groups, %pieces
  %none = icmp eq i64 %fine, 0
  %block = select i1 %none, i64 1, i64 %fine
  store i64 %block, ptr %block.at
  %others = sub i64 %threads, 1
  %spare = sub i64 %groups, 1
  %few = icmp slt i64 %spare, %others
  %helpers = select i1 %few, i64 %spare, i64 %others
  %holders = add i64 %helpers, 1
  store i64 %holders, ptr %holders.at
  %order = alloca [5 x i64]
  store i64 40, ptr %order
  %order1 = getelementptr i64, ptr %order, i64 1
  store ptr null, ptr %order1
  %order2 = getelementptr i64, ptr %order, i64 2
  store ptr %ctx, ptr %order2
  %order3 = getelementptr i64, ptr %order, i64 3
  store ptr @task, ptr %order3
  %order4 = getelementptr i64, ptr %order, i64 4
  store ptr %s, ptr %order4
  %post.at = getelementptr i8, ptr %api, i64 136
  %post = load ptr, ptr %post.at
  br label %next
next:
  %i = phi i64 [ 0, %share ], [ %i1, %posted ]
  %more = icmp slt i64 %i, %helpers
  br i1 %more, label %order.one, label %alone
order.one:
  %refused = call ptr %post(ptr %order)
  %took = icmp eq ptr %refused, null
  br i1 %took, label %posted, label %unposted
unposted:
  call void @drop(ptr %s)
  br label %posted
posted:
  %i1 = add i64 %i, 1
  br label %next
alone:
  call void @work(ptr %s)
  br label %wait
wait:
  %done = load atomic i64, ptr %done.at seq_cst, align 8
  %all = icmp sge i64 %done, %groups
  br i1 %all, label %out, label %yield
yield:
  %ignored = call i32 @sched_yield()
  br label %wait
out:
  call void @drop(ptr %s)
  ret ptr null
}}
"""


def handler(lanes: int, batched: bool, frame_bytes: int) -> str:
    """Return the handler's LLVM assembly, around a function `run`."""
    one = "  %batch = add i64 0, 1"
    from_shape = """  %ret0 = load ptr, ptr %rets.buffers
  %dims.at = getelementptr i8, ptr %ret0, i64 40
  %dims = load ptr, ptr %dims.at
  %batch = load i64, ptr %dims"""
    return ASSEMBLY.format(
        frame=-(-max(frame_bytes, 64) // 64) * 64,
        batch=from_shape if batched else one,
        lanes=lanes,
        lanes_less_one=lanes - 1,
        major=VERSION[0],
        minor=VERSION[1],
        blocks=BLOCKS_PER_THREAD,
    )
