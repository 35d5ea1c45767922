// Keeps the page for when there is no network, and offers a newer version once all of it is there.
// A version that cannot start is replaced as well.
new Promise((begin) => ["TrunkApplicationStarted", "error"].map((name) => addEventListener(name, begin, true))).then(async () => {
  const workers = navigator.serviceWorker;
  let registration, notice;
  try {
    registration = await workers.register("sw.js");
  } catch {
    return;
  }
  const offer = () => {
    if (notice) return;
    notice = document.createElement("div");
    notice.className = "toast";
    notice.innerHTML = '<p>A new version is ready</p><button class="btn btn--quiet" type="button">Reload</button><button class="btn btn--quiet btn--icon" type="button" aria-label="Dismiss"><svg class="icon" aria-hidden="true"><use href="#i-cross"/></svg></button>';
    notice.children[1].onclick = () => {
      const { waiting } = registration;
      if (!waiting) return location.reload();
      waiting.onstatechange = () => waiting.state === "activated" && location.reload();
      waiting.postMessage("activate");
    };
    notice.lastChild.onclick = () => notice.remove();
    (document.querySelector(".toasts") ?? document.body).append(notice);
  };
  const look = () => {
    const { active, waiting, installing } = registration;
    if (active && waiting) offer();
    else if (installing) installing.onstatechange = look;
  };
  registration.onupdatefound = look;
  // Another tab has moved on; what a person does in this one is not lost for that.
  workers.oncontrollerchange = offer;
  look();
});
