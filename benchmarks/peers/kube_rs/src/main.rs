//! Measures one kube-rs reflector: prints one JSON object with the figures of benchmarks/harness.py.
//!
//!     kube-rs-peer [--metadata] URL EVENTS
//!
//! A reflector with a streaming list fills a store, and the code that polls the stream is the handler, as in every
//! kube-rs controller. The runtime has one thread, because the process has one core.

use std::fmt::Debug;
use std::hash::Hash;
use std::time::{Duration, Instant};

use futures::{Stream, TryStreamExt, pin_mut};
use k8s_openapi::api::core::v1::Pod;
use kube::core::PartialObjectMeta;
use kube::runtime::{WatchStreamExt, reflector, watcher};
use kube::{Api, Client, Config, Resource};
use serde_json::json;

fn cpu() -> Duration {
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    assert_eq!(unsafe { libc::getrusage(libc::RUSAGE_SELF, &mut usage) }, 0);
    let of = |time: libc::timeval| Duration::new(time.tv_sec as u64, time.tv_usec as u32 * 1000);
    of(usage.ru_utime) + of(usage.ru_stime)
}

/// Returns the resident memory, after returning unused memory to the system.
fn rss_kib() -> f64 {
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::malloc_trim(0);
    }
    let text = std::fs::read_to_string("/proc/self/statm").expect("statm");
    let pages: f64 = text
        .split(' ')
        .nth(1)
        .expect("resident")
        .parse()
        .expect("a number");
    pages * unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as f64 / 1024.0
}

async fn measure<K>(
    client: Client,
    events: u64,
    watched: impl Stream<Item = watcher::Result<watcher::Event<K>>> + Send,
) -> Result<(), Box<dyn std::error::Error>>
where
    K: Resource<DynamicType = ()> + Clone + Debug + Send + Sync + 'static,
    <K as Resource>::DynamicType: Hash + Eq + Clone + Default,
{
    let (reader, writer) = reflector::store::<K>();
    let before = rss_kib();
    let (mut begin, mut begin_cpu) = (Instant::now(), cpu());
    let changes = watched.reflect(writer);
    pin_mut!(changes);
    let mut report = json!({});
    let mut seen = 0;
    while let Some(event) = changes.try_next().await? {
        match event {
            watcher::Event::InitDone => {
                let (wall, used) = (begin.elapsed(), cpu() - begin_cpu);
                let objects = reader.len();
                report["objects"] = json!(objects);
                report["sync_wall_seconds"] = json!(wall.as_secs_f64());
                report["sync_cpu_seconds"] = json!(used.as_secs_f64());
                report["kib_per_object"] = json!((rss_kib() - before) / objects as f64);
                if events == 0 {
                    break;
                }
                (begin, begin_cpu) = (Instant::now(), cpu());
                let go = http::Request::post("/go").body(Vec::new())?;
                let client = client.clone();
                tokio::spawn(async move { client.request_text(go).await.expect("go") });
            }
            watcher::Event::Apply(_) => {
                seen += 1;
                if seen == events {
                    report["watch_us_per_event"] =
                        json!((cpu() - begin_cpu).as_secs_f64() / events as f64 * 1e6);
                    report["watch_events_per_second"] =
                        json!(events as f64 / begin.elapsed().as_secs_f64());
                    break;
                }
            }
            _ => {}
        }
    }
    println!("{report}");
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let metadata = arguments.first().is_some_and(|first| first == "--metadata");
    if metadata {
        arguments.remove(0);
    }
    let (url, events) = (arguments[0].parse::<http::Uri>()?, arguments[1].parse()?);
    let mut config = Config::new(url);
    config.read_timeout = None;
    let client = Client::try_from(config)?;
    let options = watcher::Config::default().streaming_lists();
    if metadata {
        let pods: Api<PartialObjectMeta<Pod>> = Api::all(client.clone());
        measure(client, events, watcher(pods, options)).await
    } else {
        let pods: Api<Pod> = Api::all(client.clone());
        measure(client, events, watcher(pods, options)).await
    }
}
