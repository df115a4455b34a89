{
  const mark = () => {
    for (const box of document.querySelectorAll(".scroll")) {
      box.classList.toggle("wide", box.scrollWidth > box.clientWidth + 1);
    }
  };
  addEventListener("resize", mark);
  document.addEventListener("toggle", mark, true); // what is folded has no width yet
  mark();
}
